import type { Tool } from '@earendil-works/pi-ai';
import { describe, expect, test } from '@jest/globals';
import type { ProviderReply } from '../../src/testing/provider-server.ts';
import { askServer, user, wires } from './harness.ts';

const weather: Tool = {
  name: 'weather',
  description: 'The weather at a place',
  parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
};

const answer: ProviderReply = {
  content: [
    { type: 'thinking', chunks: ['Where ', 'is it?'], signature: 'sig-1' },
    { type: 'text', chunks: ['Let me ', 'look.'] },
    { type: 'toolCall', id: 'call_a', name: 'weather', arguments: { place: 'Bern' } },
    { type: 'toolCall', id: 'call_b', name: 'weather', arguments: { place: 'Rome' } },
  ],
  usage: { input: 100, output: 40, cacheRead: 60, reasoning: 8 },
};

const blockEvents = {
  anthropic: [
    ...['thinking_start', 'thinking_delta', 'thinking_delta', 'thinking_end'],
    ...['text_start', 'text_delta', 'text_delta', 'text_end'],
    ...['toolcall_start', 'toolcall_delta', 'toolcall_delta', 'toolcall_end'],
    ...['toolcall_start', 'toolcall_delta', 'toolcall_delta', 'toolcall_end'],
  ],
  // Chat completions do not say where a block ends, so the adapter ends them all with the answer.
  'openai-completions': [
    ...['thinking_start', 'thinking_delta', 'thinking_delta', 'text_start', 'text_delta', 'text_delta'],
    ...['toolcall_start', 'toolcall_delta', 'toolcall_delta', 'toolcall_delta'],
    ...['toolcall_start', 'toolcall_delta', 'toolcall_delta', 'toolcall_delta'],
    ...['thinking_end', 'text_end', 'toolcall_end', 'toolcall_end'],
  ],
  // The end of a summary part is a delta of its own, a blank line.
  'openai-responses': [
    ...['thinking_start', 'thinking_delta', 'thinking_delta', 'thinking_delta', 'thinking_end'],
    ...['text_start', 'text_delta', 'text_delta', 'text_end'],
    ...['toolcall_start', 'toolcall_delta', 'toolcall_delta', 'toolcall_end'],
    ...['toolcall_start', 'toolcall_delta', 'toolcall_delta', 'toolcall_end'],
  ],
};

describe.each(wires)('an answer over %s', (wire) => {
  test('thinking, text, tool calls and usage arrive, and the events come in order', async () => {
    const { outcome, events, server } = await askServer(wire, () => answer, {
      context: { systemPrompt: 'Be brief.', messages: [user('Weather?')], tools: [weather] },
      options: { reasoning: 'low' },
    });
    const { kind, message } = await outcome;

    expect(kind).toBe('message');
    expect(message).toMatchObject({ stopReason: 'toolUse', provider: 'test', model: 'model-1', responseId: 'reply_0' });
    const [thinking, text, first, second] = message.content;
    expect(thinking).toMatchObject({ type: 'thinking', thinking: 'Where is it?' });
    expect(text).toMatchObject({ type: 'text', text: 'Let me look.' });
    expect(first).toMatchObject({ type: 'toolCall', name: 'weather', arguments: { place: 'Bern' } });
    expect(second).toMatchObject({ type: 'toolCall', name: 'weather', arguments: { place: 'Rome' } });
    const ids = wire === 'openai-responses' ? ['call_a|fc_2', 'call_b|fc_3'] : ['call_a', 'call_b'];
    expect([first, second].map((call) => call?.type === 'toolCall' && call.id)).toEqual(ids);
    expect(message.usage).toMatchObject({ input: 100, output: 40, cacheRead: 60, reasoning: 8, totalTokens: 200 });
    expect(message.usage.cost.total).toBeCloseTo((100 * 1 + 40 * 10 + 60 * 0.1) / 1e6, 10);

    expect(events.map((event) => event.type)).toEqual(['start', ...blockEvents[wire], 'done']);
    expect(events.at(-1)).toEqual({ type: 'done', reason: 'toolUse', message });
    expect(await server.requests[0]!.ended).toBe('complete');
  });

  test('a thinking signature is kept for the next request', async () => {
    const { outcome } = await askServer(wire, () => answer, { options: { reasoning: 'low' } });
    const [thinking] = (await outcome).message.content;
    const expected = {
      anthropic: 'sig-1',
      'openai-completions': 'reasoning_content',
      'openai-responses': expect.stringContaining('"encrypted_content":"sig-1"'),
    };
    expect(thinking).toMatchObject({ thinkingSignature: expected[wire] });
  });

  test('an image in a user message reaches the wire', async () => {
    const data = Buffer.from('not really a png').toString('base64');
    const { outcome, server } = await askServer(wire, () => ({ content: [{ type: 'text', chunks: ['A cat.'] }] }), {
      context: {
        messages: [
          user([
            { type: 'text', text: 'What is it?' },
            { type: 'image', data, mimeType: 'image/png' },
          ]),
        ],
      },
    });
    expect((await outcome).kind).toBe('message');
    const body = JSON.stringify(server.requests[0]!.body);
    const form = wire === 'anthropic' ? `"media_type":"image/png","data":"${data}"` : `data:image/png;base64,${data}`;
    expect(body).toContain(form);
    expect(body).toContain('What is it?');
  });

  test('headers of the options, the prompt and the tools reach the wire', async () => {
    const { outcome, server } = await askServer(wire, () => ({}), {
      context: { systemPrompt: 'Speak like a clerk.', messages: [user('Hi')], tools: [weather] },
      options: { headers: { 'x-team': 'blue' } },
    });
    await outcome;
    const { headers, body } = server.requests[0]!;
    expect(headers['x-team']).toBe('blue');
    expect(headers[wire === 'anthropic' ? 'x-api-key' : 'authorization']).toMatch(/sk-test$/);
    expect(JSON.stringify(body)).toContain('Speak like a clerk.');
    expect(JSON.stringify(body.tools)).toContain('"weather"');
  });

  test('an answer cut at its token limit is a message with stop reason length', async () => {
    const stopReason = {
      anthropic: 'max_tokens',
      'openai-completions': 'length',
      'openai-responses': 'max_output_tokens',
    };
    const { outcome } = await askServer(wire, () => ({
      content: [{ type: 'text', chunks: ['and then'] }],
      stopReason: stopReason[wire],
      usage: { input: 10, output: 5 },
    }));
    expect(await outcome).toMatchObject({ kind: 'message', message: { stopReason: 'length' } });
  });

  test('an empty answer is a message', async () => {
    const { outcome, events } = await askServer(wire, () => ({}));
    expect(await outcome).toMatchObject({ kind: 'message', message: { stopReason: 'stop', content: [] } });
    expect(events.map((event) => event.type)).toEqual(['start', 'done']);
  });

  test('keep-alives leave no trace in the message', async () => {
    const { outcome } = await askServer(wire, () => ({
      content: [{ type: 'ping' }, { type: 'ping' }, { type: 'text', chunks: ['Hi'] }],
    }));
    expect((await outcome).message.content).toMatchObject([{ type: 'text', text: 'Hi' }]);
  });
});

test('an answer above the declared window is still an answer', async () => {
  const { outcome } = await askServer('openai-completions', () => ({
    content: [{ type: 'text', chunks: ['Fine'] }],
    usage: { input: 300_000, output: 2 },
  }));
  expect((await outcome).kind).toBe('message');
});

test('an answer of nothing that filled the window is overflow', async () => {
  const { outcome } = await askServer('openai-completions', () => ({
    stopReason: 'length',
    usage: { input: 200_000, output: 0 },
  }));
  expect((await outcome).kind).toBe('overflow');
});

import { appendFileSync, existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type AssistantMessageEvent,
  createModels,
  type Message,
  type ModelsSimpleStreamOptions,
} from '@earendil-works/pi-ai';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readRequests, type ScriptedModel, type ScriptedReply, scriptedModel } from '../src/testing/scripted-model.ts';
import { waitFor } from './support/wait-for.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
});

afterEach(async () => {
  await rm(folder, { recursive: true, force: true });
});

const hello: Message = { role: 'user', content: 'Hello', timestamp: 1 };
const tools = [{ name: 'add', description: 'Adds', parameters: { type: 'object' } }];

function assistant(text: string): Message {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
  const origin = { api: 'scripted', provider: 'scripted', model: 'main' };
  return { role: 'assistant', content: [{ type: 'text', text }], ...origin, usage, stopReason: 'stop', timestamp: 2 };
}

interface Asked {
  events: AssistantMessageEvent[];
  done: Promise<AssistantMessageEvent>;
}

function ask(model: ScriptedModel, messages: Message[] = [hello], options: ModelsSimpleStreamOptions = {}): Asked {
  const models = createModels();
  models.setProvider(model);
  const [chosen] = model.getModels();
  if (chosen === undefined) throw new Error('no model');
  const events: AssistantMessageEvent[] = [];
  const read = async () => {
    for await (const event of models.streamSimple(chosen, { systemPrompt: 'Be brief.', messages, tools }, options)) {
      events.push(structuredClone(event));
    }
    const last = events.at(-1);
    if (last === undefined) throw new Error('no event');
    return last;
  };
  return { events, done: read() };
}

function types(events: AssistantMessageEvent[]): string[] {
  return events.map((event) => event.type);
}

function scripted(...replies: ScriptedReply[]): ScriptedModel {
  return scriptedModel({ replies, requestLog: join(folder, 'requests.jsonl') });
}

/** What the last event carries, of whichever kind. */
function messageOf(event: AssistantMessageEvent) {
  if (event.type === 'done') return event.message;
  if (event.type === 'error') return event.error;
  throw new Error(`the last event is ${event.type}`);
}

describe('a reply', () => {
  test('streams thinking, text and calls as a real provider does', async () => {
    const { events, done } = ask(
      scripted({ thinking: 'hm', text: 'Hello world', calls: [{ name: 'add', args: { a: 1 } }], chunks: 2 }),
    );
    const { content, stopReason } = messageOf(await done);
    expect(types(events)).toEqual([
      'start',
      ...['thinking_start', 'thinking_delta', 'thinking_delta', 'thinking_end'],
      ...['text_start', 'text_delta', 'text_delta', 'text_end'],
      ...['toolcall_start', 'toolcall_delta', 'toolcall_delta', 'toolcall_end'],
      'done',
    ]);
    expect(events.flatMap((event) => (event.type === 'text_delta' ? [event.delta] : []))).toEqual(['Hello ', 'world']);
    expect(stopReason).toBe('toolUse');
    expect(content).toEqual([
      { type: 'thinking', thinking: 'hm' },
      { type: 'text', text: 'Hello world' },
      { type: 'toolCall', id: 'call-0-0', name: 'add', arguments: { a: 1 } },
    ]);
  });

  test('is chosen by the number of assistant messages, so a request made anew gets the same', async () => {
    const model = scripted({ text: 'first' }, { text: 'second' });
    const later = [hello, assistant('first'), hello];
    const texts = [];
    for (const messages of [[hello], [hello], later, later]) {
      texts.push(messageOf(await ask(model, messages).done).content);
    }
    expect(texts.flat()).toMatchObject([{ text: 'first' }, { text: 'first' }, { text: 'second' }, { text: 'second' }]);
  });

  test('may be made by a function of the request', async () => {
    const model = scriptedModel({ replies: ({ messages, attempt }) => ({ text: `${messages.length} at ${attempt}` }) });
    expect(messageOf(await ask(model).done).content).toMatchObject([{ text: '1 at 1' }]);
    expect(messageOf(await ask(model).done).content).toMatchObject([{ text: '1 at 2' }]);
  });

  test('that the script does not have is an error which says so', async () => {
    const message = messageOf(await ask(scripted({ text: 'first' }), [hello, assistant('first')]).done);
    expect(message.stopReason).toBe('error');
    expect(message.errorMessage).toContain('the script has 1 replies, and a request with 1 assistant messages came');
  });

  test('reports the usage that the script names', async () => {
    const message = messageOf(await ask(scripted({ text: 'x', usage: { input: 7, output: 2, cost: 0.5 } })).done);
    expect(message.usage).toMatchObject({ input: 7, output: 2, totalTokens: 9, cost: { total: 0.5 } });
  });

  test('of stop reason length keeps its calls', async () => {
    const message = messageOf(await ask(scripted({ calls: [{ name: 'add', id: 'a' }], stopReason: 'length' })).done);
    expect(message).toMatchObject({ stopReason: 'length', content: [{ id: 'a', arguments: {} }] });
  });
});

describe('a failure', () => {
  test('comes before the first token', async () => {
    const { events, done } = ask(scripted({ error: '429 rate limit', errorStatus: 429 }));
    expect(messageOf(await done)).toMatchObject({ stopReason: 'error', errorMessage: '429 rate limit', content: [] });
    expect(types(events)).toEqual(['error']);
  });

  test('of the first n requests is counted over processes', async () => {
    const reply = { text: 'well', error: '429 rate limit', failTimes: 2 };
    const reasons = [];
    // A model of its own for each request, as in a process of its own.
    for (let request = 1; request <= 3; request++) reasons.push(messageOf(await ask(scripted(reply)).done).stopReason);
    expect(reasons).toEqual(['error', 'error', 'stop']);
  });

  test('of one session is not one of another', async () => {
    const model = scripted({ text: 'well', failTimes: 1 });
    await ask(model, [hello], { sessionId: 'a' }).done;
    expect(messageOf(await ask(model, [hello], { sessionId: 'b' }).done).stopReason).toBe('error');
    expect(messageOf(await ask(model, [hello], { sessionId: 'a' }).done).stopReason).toBe('stop');
  });

  test('in mid-stream keeps what had come', async () => {
    const { events, done } = ask(
      scripted({ text: 'Hello world', chunks: 2, breakAfterChunks: 1, error: 'terminated' }),
    );
    expect(messageOf(await done)).toMatchObject({ errorMessage: 'terminated', content: [{ text: 'Hello ' }] });
    expect(types(events)).toEqual(['start', 'text_start', 'text_delta', 'error']);
  });

  test('shows its status and headers as an HTTP answer', async () => {
    const seen: unknown[] = [];
    const onResponse = (response: unknown) => void seen.push(response);
    const reply = { error: '429', errorStatus: 429, errorHeaders: { 'retry-after': '2' } };
    await ask(scripted(reply), [hello], { onResponse }).done;
    expect(seen).toEqual([{ status: 429, headers: { 'retry-after': '2' } }]);
  });
});

describe('a held stream', () => {
  test.each([
    { at: 0, seen: [] },
    { at: 1, seen: ['start', 'text_start', 'text_delta'] },
    { at: 'all' as const, seen: ['start', 'text_start', 'text_delta', 'text_delta', 'text_end'] },
  ])('waits after $at chunks until the file exists', async ({ at, seen }) => {
    const file = join(folder, 'go');
    const asked = ask(scripted({ text: 'Hello world', chunks: 2, holdUntilFile: file, holdAfterChunks: at }));
    await waitFor(() => existsSync(`${file}.waiting`), { what: 'the hold' });
    expect(types(asked.events)).toEqual(seen);
    await writeFile(file, '');
    expect(messageOf(await asked.done).content).toMatchObject([{ text: 'Hello world' }]);
    expect(existsSync(`${file}.waiting`)).toBe(false);
  });
});

describe('an abort', () => {
  test.each<{ name: string; reply: ScriptedReply; kept: unknown[] }>([
    { name: 'before the first token', reply: { text: 'Hello world', holdAfterChunks: 0 }, kept: [] },
    { name: 'in mid-stream', reply: { text: 'Hello world', holdAfterChunks: 1 }, kept: [{ text: 'Hello ' }] },
    {
      name: 'after the last token',
      reply: { text: 'Hello world', holdAfterChunks: 'all' },
      kept: [{ text: 'Hello world' }],
    },
  ])('$name ends the stream with what had come', async ({ reply, kept }) => {
    const file = join(folder, 'never');
    const controller = new AbortController();
    const model = scripted({ ...reply, chunks: 2, holdUntilFile: file });
    const asked = ask(model, [hello], { signal: controller.signal });
    await waitFor(() => existsSync(`${file}.waiting`), { what: 'the hold' });
    controller.abort();
    const message = messageOf(await asked.done);
    expect(message).toMatchObject({ stopReason: 'aborted', errorMessage: 'Request was aborted', content: kept });
    expect(message.content).toHaveLength(kept.length);
  });

  test('is the only end of a reply that hangs', async () => {
    const controller = new AbortController();
    const model = scripted({ hangForever: true });
    const asked = ask(model, [hello], { signal: controller.signal });
    await waitFor(() => model.requests.length === 1, { what: 'the request' });
    controller.abort();
    expect(messageOf(await asked.done).stopReason).toBe('aborted');
  });

  test('during a slow stream keeps a part of the text', async () => {
    const controller = new AbortController();
    const asked = ask(scripted({ text: 'x'.repeat(100), chunks: 100, chunkDelayMs: 5 }), [hello], {
      signal: controller.signal,
    });
    await waitFor(() => asked.events.length > 4, { what: 'some chunks' });
    controller.abort();
    const message = messageOf(await asked.done);
    expect(message.stopReason).toBe('aborted');
    expect(message.content).toMatchObject([{ text: expect.stringMatching(/^x{1,99}$/) }]);
  });

  test('before the request sends nothing', async () => {
    const model = scripted({ text: 'Hello' });
    const asked = ask(model, [hello], { signal: AbortSignal.abort() });
    expect(messageOf(await asked.done).stopReason).toBe('aborted');
    expect(types(asked.events)).toEqual(['error']);
    expect(model.requests).toEqual([]);
  });
});

describe('the request log', () => {
  test('has each request as the model got it', async () => {
    const model = scripted({ text: 'Hello' });
    const options = { reasoning: 'high' as const, sessionId: 's', headers: { 'x-test': '1' }, temperature: 0.5 };
    await ask(model, [hello], options).done;
    const expected = {
      model: 'scripted/main',
      reply: 0,
      attempt: 1,
      systemPrompt: 'Be brief.',
      messages: [hello],
      tools: ['add'],
      options: {
        sessionId: 's',
        reasoning: 'high',
        temperature: 0.5,
        headers: expect.objectContaining({ 'x-test': '1' }),
      },
      pid: process.pid,
      at: expect.any(Number),
    };
    expect(readRequests(join(folder, 'requests.jsonl'))).toEqual([expected]);
    expect(model.requests).toEqual([expected]);
  });

  test('has the payload that a callback put in place', async () => {
    const model = scripted({ text: 'Hello' });
    await ask(model, [hello], { onPayload: (payload) => ({ ...(payload as object), extra: 1 }) }).done;
    expect(model.requests[0]?.payload).toEqual({
      model: 'main',
      system: 'Be brief.',
      messages: [hello],
      tools: ['add'],
      extra: 1,
    });
  });

  test('is empty before the first request, and leaves out a line that was cut off', async () => {
    const path = join(folder, 'requests.jsonl');
    expect(readRequests(path)).toEqual([]);
    await ask(scripted({ text: 'Hello' })).done;
    appendFileSync(path, '{"model":"scri');
    expect(readRequests(path)).toHaveLength(1);
  });
});

test('a provider may have several models, and a name without a slash is refused', () => {
  const model = scriptedModel({ id: 'fake/a', models: ['b'], replies: [], contextWindow: 1000 });
  expect(model.ref).toBe('fake/a');
  expect(model.getModels().map((each) => [each.provider, each.id, each.contextWindow])).toEqual([
    ['fake', 'a', 1000],
    ['fake', 'b', 1000],
  ]);
  expect(() => scriptedModel({ id: 'fake', replies: [] })).toThrow('id "fake" must be "provider/model-id"');
});

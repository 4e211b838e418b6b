import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AssistantMessage,
  createAssistantMessageEventStream,
  createModels,
  createProvider,
} from '@earendil-works/pi-ai';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { ProviderReply } from '../../src/testing/provider-server.ts';
import { ask, askServer, collection, serve, textOf, wires } from './harness.ts';

const half = (kind: 'stall' | 'break' | 'end' | 'malformed'): ProviderReply => ({
  content: [{ type: 'text', chunks: ['One ', 'two ', 'three'] }],
  fault: { kind, after: 2 },
});

// OpenAI's SDK prints what it cannot parse.
beforeEach(() => {
  jest.spyOn(console, 'error').mockImplementation(() => {});
});
afterEach(() => {
  jest.restoreAllMocks();
});

describe.each(wires)('a stream over %s', (wire) => {
  test.each(['break', 'end', 'malformed'] as const)(
    'that fails half-way (%s) is transient and keeps the partial message',
    async (kind) => {
      const { outcome, events } = await askServer(wire, () => half(kind));
      const result = await outcome;
      expect(result).toMatchObject({ kind: 'transient', reason: 'broken_stream', message: { stopReason: 'error' } });
      expect(textOf(result)).toBe('One two ');
      expect(events.at(-1)).toEqual({ type: 'error', reason: 'error', error: result.message });
    },
  );

  test('with an event that is not JSON gets its connection closed', async () => {
    const { outcome, server } = await askServer(wire, () => half('malformed'));
    await outcome;
    expect(await server.requests[0]!.ended).toBe('client-closed');
  });

  test('whose socket breaks before the answer is transient', async () => {
    const { outcome } = await askServer(wire, () => ({ fault: { kind: 'break', after: 'head' } }));
    expect(await outcome).toMatchObject({ kind: 'transient', reason: 'network' });
  });

  test.each([
    ['half-way', 2],
    ['before the first word', 0],
    ['before the answer', 'head'],
  ] as const)('that falls silent %s is stalled, and the server sees its connection closed', async (_when, after) => {
    const { outcome, server } = await askServer(
      wire,
      () => ({ content: [{ type: 'text', chunks: ['One ', 'two ', 'three'] }], fault: { kind: 'stall', after } }),
      { stallTimeoutMs: 150 },
    );
    const result = await outcome;
    expect(result).toMatchObject({ kind: 'transient', reason: 'stall', message: { stopReason: 'error' } });
    expect(result.message.errorMessage).toContain('stalled');
    expect(textOf(result)).toBe(after === 2 ? 'One two ' : '');
    expect(await server.requests[0]!.ended).toBe('client-closed');
  });

  test('that takes longer than the stall timeout, but never pauses so long, is not stalled', async () => {
    const chunks = Array.from({ length: 16 }, (_, index) => `${index} `);
    const startedAt = performance.now();
    const { outcome } = await askServer(wire, () => ({ content: [{ type: 'text', chunks }], delayMs: 50 }), {
      stallTimeoutMs: 400,
    });
    const result = await outcome;
    expect(result.kind).toBe('message');
    expect(textOf(result)).toBe(chunks.join(''));
    expect(performance.now() - startedAt).toBeGreaterThan(400);
  });

  test('of nothing but keep-alives for longer than the stall timeout is not stalled', async () => {
    const pings = Array.from({ length: 16 }, () => ({ type: 'ping' as const }));
    const { outcome } = await askServer(
      wire,
      () => ({ content: [...pings, { type: 'text', chunks: ['Done thinking'] }], delayMs: 50 }),
      { stallTimeoutMs: 400 },
    );
    expect(textOf(await outcome)).toBe('Done thinking');
  });

  test('that is aborted keeps its content, and the server sees the connection closed within 300 ms', async () => {
    const { outcome, server, saw, controller, events } = await askServer(wire, () => half('stall'));
    await saw('text_delta');
    const abortedAt = Date.now();
    controller.abort();
    const result = await outcome;
    expect(result).toMatchObject({ kind: 'aborted', message: { stopReason: 'aborted' } });
    expect(textOf(result)).toMatch(/^One /);
    expect(events.at(-1)).toEqual({ type: 'error', reason: 'aborted', error: result.message });
    expect(await server.requests[0]!.ended).toBe('client-closed');
    expect(server.requests[0]!.clientClosedAt! - abortedAt).toBeLessThan(300);
  });

  test('that is aborted before the answer began closes the connection too', async () => {
    const { outcome, server, controller } = await askServer(wire, () => ({ fault: { kind: 'stall', after: 'head' } }));
    const request = await server.request();
    controller.abort();
    expect(await outcome).toMatchObject({ kind: 'aborted', message: { content: [] } });
    expect(await request.ended).toBe('client-closed');
  });

  test('that is aborted beforehand makes no request', async () => {
    const server = await serve(() => ({}));
    const { outcome, events } = ask(collection(wire, server.baseUrl(wire)), { signal: AbortSignal.abort() });
    const result = await outcome;
    expect(result).toMatchObject({ kind: 'aborted', message: { stopReason: 'aborted', content: [] } });
    expect(events).toEqual([{ type: 'error', reason: 'aborted', error: result.message }]);
    expect(server.requests).toHaveLength(0);
  });

  test('that fails is followed by one that works over the same collection', async () => {
    const server = await serve((_request, index) =>
      index === 0 ? half('break') : { content: [{ type: 'text', chunks: ['All three'] }] },
    );
    const target = collection(wire, server.baseUrl(wire));
    expect((await ask(target).outcome).kind).toBe('transient');
    expect(textOf(await ask(target).outcome)).toBe('All three');
  });
});

test('a slow hook is not a stall of the provider', async () => {
  const { outcome } = await askServer('anthropic', () => ({ content: [{ type: 'text', chunks: ['Hi'] }] }), {
    stallTimeoutMs: 100,
    options: {
      async onPayload(payload) {
        await sleep(350);
        return payload;
      },
    },
  });
  expect((await outcome).kind).toBe('message');
});

/** A provider of one's own whose stream does what `run` says and never heeds its signal. */
function stubborn(run: (stream: ReturnType<typeof createAssistantMessageEventStream>) => void) {
  const { model } = collection('anthropic', 'http://127.0.0.1:9');
  const models = createModels();
  const stream = () => {
    const events = createAssistantMessageEventStream();
    const partial = {
      role: 'assistant' as const,
      content: [{ type: 'text' as const, text: 'half' }],
      api: model.api,
      provider: 'test',
      model: model.id,
      usage: {
        input: 0,
        output: 0,
        cacheRead: 0,
        cacheWrite: 0,
        totalTokens: 0,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
      },
      stopReason: 'pending' as const,
      timestamp: 1,
    };
    events.push({ type: 'start', partial });
    run(events);
    return events;
  };
  models.setProvider(
    createProvider({
      id: 'test',
      auth: { apiKey: { name: 'key', resolve: async () => ({ auth: {} }) } },
      models: [model],
      api: { stream, streamSimple: stream },
    }),
  );
  return { models, model };
}

test('a stream that ends without a result is transient', async () => {
  // pi-ai itself waits for a result that never comes; the stall timeout ends it.
  const { outcome } = ask(
    stubborn((events) => events.end()),
    { stallTimeoutMs: 50 },
  );
  const result = await outcome;
  expect(result).toMatchObject({ kind: 'transient', message: { stopReason: 'error' } });
  expect(textOf(result)).toBe('half');
});

test('an adapter that ignores its signal is left behind, and what it still adds stays out of the message', async () => {
  let partial: AssistantMessage | undefined;
  const { outcome, saw, controller } = ask(
    stubborn(() => {}),
    {
      onEvent(event) {
        if (event.type === 'start') partial = event.partial;
      },
    },
  );
  await saw('start');
  controller.abort();
  const result = await outcome;
  partial!.content.push({ type: 'text', text: ' and more' });
  expect(result).toMatchObject({ kind: 'aborted', message: { stopReason: 'aborted' } });
  expect(textOf(result)).toBe('half');
});

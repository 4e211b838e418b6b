import { createModels, createProvider, type ProviderStreams } from '@earendil-works/pi-ai';
import { describe, expect, test } from '@jest/globals';
import { ask, askServer, collection, textOf, wires } from './harness.ts';

const hello = () => ({ content: [{ type: 'text' as const, chunks: ['Hel', 'lo'] }] });

describe.each(wires)('callbacks over %s', (wire) => {
  test('a bug in onEvent comes out as it is, and the request is dropped', async () => {
    const bug = new TypeError('undefined is not a function');
    const { outcome, server } = await askServer(wire, () => ({ ...hello(), fault: { kind: 'stall', after: 1 } }), {
      onEvent(event) {
        if (event.type === 'text_delta') throw bug;
      },
    });
    await expect(outcome).rejects.toBe(bug);
    expect(await server.requests[0]!.ended).toBe('client-closed');
  });

  test.each(['onPayload', 'onResponse', 'onProviderStreamEvent', 'transformHeaders'] as const)(
    'what %s throws comes out as it is, not as a provider error',
    async (name) => {
      const bug = new Error('hook failed');
      const { outcome } = await askServer(wire, hello, {
        options: {
          [name]: () => {
            throw bug;
          },
        },
      });
      await expect(outcome).rejects.toBe(bug);
    },
  );

  test('the caller’s fetch, onPayload and onResponse are called', async () => {
    const calls: string[] = [];
    const { outcome, server } = await askServer(wire, hello, {
      options: {
        fetch(input, init) {
          calls.push('fetch');
          return fetch(input, init);
        },
        onPayload(payload) {
          calls.push('onPayload');
          return { ...(payload as object), metadata: { user_id: 'u-1' } };
        },
        onResponse({ status, headers }) {
          calls.push(`onResponse ${status} ${headers['content-type']}`);
        },
      },
    });
    expect(textOf(await outcome)).toBe('Hello');
    expect(calls).toEqual(['onPayload', 'fetch', 'onResponse 200 text/event-stream']);
    expect(server.requests[0]!.body).toMatchObject({ metadata: { user_id: 'u-1' } });
  });

  test('retries inside the SDK stay off whatever the options say', async () => {
    const { outcome, server } = await askServer(wire, () => ({ failure: { status: 500, error: { message: 'No' } } }), {
      options: { maxRetries: 3 },
    });
    expect((await outcome).kind).toBe('transient');
    expect(server.requests).toHaveLength(1);
  });

  test('a signal in the options aborts as well', async () => {
    const controller = new AbortController();
    const { outcome, saw } = await askServer(wire, () => ({ ...hello(), fault: { kind: 'stall', after: 1 } }), {
      options: { signal: controller.signal },
    });
    await saw('text_delta');
    controller.abort();
    expect(await outcome).toMatchObject({ kind: 'aborted', message: { stopReason: 'aborted' } });
  });
});

test('concurrent requests keep their HTTP facts apart', async () => {
  const asked = await Promise.all(
    [429, 500, 400, 503, 401].map((status) =>
      askServer('openai-completions', () => ({
        failure: { status, error: { message: 'x' }, headers: { 'retry-after': String(status) } },
      })),
    ),
  );
  const outcomes = await Promise.all(asked.map(({ outcome }) => outcome));
  expect(outcomes.map((outcome) => 'status' in outcome && outcome.status)).toEqual([429, 500, 400, 503, 401]);
  expect(outcomes.map((outcome) => 'retryAfterMs' in outcome && outcome.retryAfterMs)).toEqual([
    429_000,
    500_000,
    false,
    503_000,
    false,
  ]);
});

test('every request of a collection gives the adapter the same fetch function, so its token cache lives on', async () => {
  const { model } = collection('anthropic', 'http://127.0.0.1:9');
  const models = createModels();
  const seen: unknown[] = [];
  const stream: ProviderStreams['stream'] = (_model, _context, options) => {
    seen.push(options?.fetch);
    throw new Error('no answer');
  };
  models.setProvider(
    createProvider({
      id: 'test',
      auth: { apiKey: { name: 'key', resolve: async () => ({ auth: {} }) } },
      models: [model],
      api: { stream, streamSimple: stream },
    }),
  );
  await ask({ models, model }).outcome;
  await ask({ models, model }).outcome;
  expect(seen[0]).toEqual(expect.any(Function));
  expect(seen[1]).toBe(seen[0]);
});

test('a provider function that throws at once is a permanent outcome', async () => {
  const { model } = collection('anthropic', 'http://127.0.0.1:9');
  const models = createModels();
  const boom = () => {
    throw new Error('adapter is broken');
  };
  models.setProvider(
    createProvider({
      id: 'test',
      auth: { apiKey: { name: 'key', resolve: async () => ({ auth: {} }) } },
      models: [model],
      api: { stream: boom, streamSimple: boom },
    }),
  );
  const inside = await ask({ models, model }).outcome;
  expect(inside).toMatchObject({ kind: 'permanent', message: { errorMessage: 'adapter is broken' } });

  const outside = await ask({ models: Object.assign(createModels(), { streamSimple: boom }), model }).outcome;
  expect(outside).toMatchObject({ kind: 'permanent', message: { errorMessage: 'adapter is broken' } });
});

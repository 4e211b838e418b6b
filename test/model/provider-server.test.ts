import { expect, test } from '@jest/globals';
import { startProviderServer } from '../../src/testing/provider-server.ts';
import { serve, wires } from './harness.ts';

const paths = {
  anthropic: '/v1/messages',
  'openai-completions': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
};

function post(url: string, body: unknown): Promise<Response> {
  return fetch(url, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
}

test.each(wires)('%s: each frame is an event whose data is JSON', async (wire) => {
  const server = await serve(() => ({ content: [{ type: 'text', chunks: ['a', 'b'] }, { type: 'ping' }] }));
  const response = await post(server.origin + paths[wire], { stream: true, model: 'm' });
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  const frames = (await response.text()).split('\n\n').slice(0, -1);
  for (const frame of frames) {
    const data = frame.replace(/^event: .*\n/, '');
    if (data.startsWith(':') || data === 'data: [DONE]') continue;
    expect(data).toMatch(/^data: \{.*\}$/);
    JSON.parse(data.slice('data: '.length));
  }
  expect(frames.length).toBeGreaterThan(5);
});

test('a request is recorded with its path, headers and body', async () => {
  const server = await serve(() => ({}));
  const first = server.request();
  await (await post(`${server.origin}/v1/messages?beta=true`, { stream: true, model: 'm' })).text();
  expect(await first).toMatchObject({
    index: 0,
    wire: 'anthropic',
    path: '/v1/messages?beta=true',
    headers: { host: new URL(server.origin).host },
    body: { stream: true, model: 'm' },
  });
  expect(await server.requests[0]!.ended).toBe('complete');
  expect(server.requests[0]).not.toHaveProperty('clientClosedAt');
});

test('what the script cannot answer gets an error answer', async () => {
  const server = await serve(() => {
    throw new Error('script bug');
  });
  const failed = await post(`${server.origin}/v1/responses`, { stream: true });
  expect(failed.status).toBe(500);
  expect(await failed.text()).toContain('script bug');
  expect((await post(`${server.origin}/v1/embeddings`, {})).status).toBe(404);
  expect((await post(`${server.origin}/v1/messages`, '{not json')).status).toBe(400);
});

test('a request that is not streamed is refused', async () => {
  const server = await serve(() => ({}));
  expect((await post(`${server.origin}/v1/messages`, { model: 'm' })).status).toBe(400);
});

test('close ends a stalled answer', async () => {
  const server = await startProviderServer({ reply: () => ({ fault: { kind: 'stall', after: 'head' } }) });
  const stalled = post(`${server.origin}/v1/messages`, { stream: true });
  await server.request();
  const [outcome] = await Promise.all([stalled.catch((error: unknown) => error), server.close()]);
  expect(String(outcome)).toContain('fetch failed');
});

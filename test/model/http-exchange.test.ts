import { expect, test } from '@jest/globals';
import { type HttpExchange, observedFetch, withExchange } from '../../src/activities/model/http-exchange.ts';

function exchangeWith(base: typeof fetch): { exchange: HttpExchange; lives: () => number; answer: Promise<Response> } {
  let lives = 0;
  const exchange: HttpExchange = { onActivity: () => (lives += 1) };
  return { exchange, lives: () => lives, answer: withExchange(exchange, () => observedFetch(base)('http://x.test/')) };
}

test('status, headers and each piece of the body are noted, and the body is passed on', async () => {
  const { exchange, lives, answer } = exchangeWith(async () => new Response('abc', { headers: { 'x-a': '1' } }));
  expect(await (await answer).text()).toBe('abc');
  expect(exchange).toMatchObject({ status: 200 });
  expect(exchange.headers?.get('x-a')).toBe('1');
  expect(lives()).toBe(3);
});

test('a body that breaks is noted', async () => {
  const reset = new Error('reset');
  const body = new ReadableStream({ pull: (controller) => controller.error(reset) });
  const { exchange, answer } = exchangeWith(async () => new Response(body));
  await expect((await answer).text()).rejects.toBe(reset);
  expect(exchange.bodyError).toEqual({ error: reset });
});

test('a fetch that fails is noted, and a later answer wipes the note', async () => {
  const refused = new Error('refused');
  const { exchange, answer } = exchangeWith(() => Promise.reject(refused));
  await expect(answer).rejects.toBe(refused);
  expect(exchange.connectError).toEqual({ error: refused });

  await withExchange(exchange, () => observedFetch(async () => new Response(null, { status: 204 }))('http://x.test/'));
  expect(exchange).not.toHaveProperty('connectError');
  expect(exchange.status).toBe(204);
});

test('cancelling the copy of the body cancels the original', async () => {
  let cancelled: unknown;
  const body = new ReadableStream({
    cancel(reason) {
      cancelled = reason;
    },
  });
  const { answer } = exchangeWith(async () => new Response(body));
  await (await answer).body?.cancel('enough');
  expect(cancelled).toBe('enough');
});

test('outside of a request an observed fetch is a plain one', async () => {
  const response = new Response('abc');
  expect(await observedFetch(async () => response)('http://x.test/')).toBe(response);
});

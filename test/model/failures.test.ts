import { describe, expect, test } from '@jest/globals';
import type { ProviderReply, ReplyError } from '../../src/testing/provider-server.ts';
import { ask, askServer, collection, serve, textOf, wires } from './harness.ts';

function failing(status: number, error: ReplyError, headers: Record<string, string> = {}): () => ProviderReply {
  return () => ({ failure: { status, error, headers } });
}

describe.each(wires)('an error answer over %s', (wire) => {
  test.each([
    ['seconds', () => ({ 'retry-after': '7' }), 7000, 7000],
    ['milliseconds', () => ({ 'retry-after-ms': '1250', 'retry-after': '2' }), 1250, 1250],
    ['a date', () => ({ 'retry-after': new Date(Date.now() + 30_000).toUTCString() }), 20_000, 30_000],
  ])('429 with retry-after in %s is transient and says how long to wait', async (_form, headers, least, most) => {
    const { outcome, server, events } = await askServer(
      wire,
      failing(429, { type: 'rate_limit_error', message: 'Slow down' }, headers()),
    );
    const result = await outcome;
    expect(result).toMatchObject({
      kind: 'transient',
      reason: 'rate_limit',
      status: 429,
      message: { stopReason: 'error' },
    });
    const wait = result.kind === 'transient' ? result.retryAfterMs : undefined;
    expect(wait).toBeGreaterThanOrEqual(least);
    expect(wait).toBeLessThanOrEqual(most);
    // Temporal retries, not the SDK.
    expect(server.requests).toHaveLength(1);
    expect(events).toEqual([{ type: 'error', reason: 'error', error: result.message }]);
  });

  test.each([
    [408, 'timeout'],
    [409, 'conflict'],
    [500, 'server_error'],
    [502, 'server_error'],
    [503, 'overloaded'],
    [504, 'timeout'],
    [529, 'overloaded'],
  ] as const)('status %i is transient: %s', async (status, reason) => {
    const { outcome, server } = await askServer(wire, failing(status, { message: 'Not now' }));
    const result = await outcome;
    expect(result).toMatchObject({ kind: 'transient', status, reason });
    expect(result).not.toHaveProperty('retryAfterMs');
    expect(server.requests).toHaveLength(1);
  });

  test.each([400, 401, 403, 404, 422])('status %i is permanent and keeps the provider’s words', async (status) => {
    const { outcome, server } = await askServer(wire, failing(status, { message: 'Field temperature is odd' }));
    const result = await outcome;
    expect(result).toMatchObject({ kind: 'permanent', code: 'model_failed', status, message: { stopReason: 'error' } });
    expect(result.message.errorMessage).toContain('Field temperature is odd');
    expect(server.requests).toHaveLength(1);
  });

  test('an exhausted quota sent as 429 is permanent, even with a time to come back', async () => {
    const error = {
      type: 'insufficient_quota',
      code: 'insufficient_quota',
      message: 'You exceeded your current quota.',
    };
    const { outcome } = await askServer(wire, failing(429, error, { 'retry-after': '1' }));
    expect(await outcome).toMatchObject({ kind: 'permanent', code: 'model_failed', status: 429 });
  });

  test('a rate limit whose text links to the billing page is transient', async () => {
    const message = 'Rate limit reached. Please try again in 1.5s. Add a payment method at /account/billing.';
    const { outcome } = await askServer(wire, failing(429, { message, code: 'rate_limit_exceeded' }));
    expect(await outcome).toMatchObject({ kind: 'transient', reason: 'rate_limit', retryAfterMs: 1500 });
  });

  test('a prompt that does not fit the window is overflow', async () => {
    const { outcome } = await askServer(
      wire,
      failing(400, {
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
        message: 'prompt is too long: 213462 tokens > 200000 maximum',
      }),
    );
    expect(await outcome).toMatchObject({ kind: 'overflow', status: 400 });
  });

  test('a request too large for the server is overflow', async () => {
    const { outcome } = await askServer(wire, failing(413, { type: 'request_too_large', message: 'Too big' }));
    expect(await outcome).toMatchObject({ kind: 'overflow', status: 413 });
  });

  test('throttling that speaks of tokens is not overflow', async () => {
    const message = 'ThrottlingException: Too many tokens, please wait before trying again.';
    const { outcome } = await askServer(wire, failing(429, { message }));
    expect(await outcome).toMatchObject({ kind: 'transient', reason: 'rate_limit' });
  });

  test('an error answer that is not JSON is sorted by its status', async () => {
    const { outcome } = await askServer(wire, () => ({ failure: { status: 502, body: '<html>Bad Gateway</html>' } }));
    expect(await outcome).toMatchObject({ kind: 'transient', status: 502 });
  });

  test('x-should-retry decides where the status does not', async () => {
    const no = await askServer(wire, failing(500, { message: 'No' }, { 'x-should-retry': 'false' }));
    expect(await no.outcome).toMatchObject({ kind: 'permanent', status: 500 });
    const yes = await askServer(wire, failing(400, { message: 'Yes' }, { 'x-should-retry': 'true' }));
    expect(await yes.outcome).toMatchObject({ kind: 'transient', status: 400 });
  });

  test('an overload told inside the stream is transient and keeps the partial message', async () => {
    const { outcome } = await askServer(wire, () => ({
      content: [{ type: 'text', chunks: ['One', 'two'] }],
      fault: { kind: 'error', after: 1, error: { type: 'overloaded_error', message: 'Overloaded' } },
    }));
    const result = await outcome;
    expect(result).toMatchObject({ kind: 'transient', reason: 'overloaded', message: { stopReason: 'error' } });
    expect(textOf(result)).toBe('One');
  });

  test('an overflow told inside the stream is overflow', async () => {
    const message = 'Your input exceeds the context window of this model.';
    const { outcome } = await askServer(wire, () => ({ fault: { kind: 'error', after: 0, error: { message } } }));
    expect(await outcome).toMatchObject({ kind: 'overflow' });
  });

  test('a refusal is permanent', async () => {
    const stopReason = {
      anthropic: 'refusal',
      'openai-completions': 'content_filter',
      'openai-responses': 'content_filter',
    };
    const { outcome } = await askServer(wire, () => ({ stopReason: stopReason[wire] }));
    expect(await outcome).toMatchObject({ kind: 'permanent', code: 'model_failed' });
  });

  test('a refused connection is transient', async () => {
    const server = await serve(() => ({}));
    const url = server.baseUrl(wire);
    await server.close();
    const { outcome } = ask(collection(wire, url));
    expect(await outcome).toMatchObject({ kind: 'transient', reason: 'network', message: { content: [] } });
  });

  test('an address that nothing can fetch is permanent', async () => {
    const { outcome } = ask(collection(wire, 'http://127.0.0.1:1'));
    expect(await outcome).toMatchObject({ kind: 'permanent', code: 'model_failed' });
  });
});

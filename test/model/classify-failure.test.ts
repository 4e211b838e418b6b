import type { AssistantMessage } from '@earendil-works/pi-ai';
import { describe, expect, test } from '@jest/globals';
import { classifyFailure } from '../../src/activities/model/classify-failure.ts';
import type { HttpExchange } from '../../src/activities/model/http-exchange.ts';
import { retryAfterMs } from '../../src/activities/model/retry-after.ts';

function failure(errorMessage: string, exchange: Partial<HttpExchange> = {}, rawStopReason?: string) {
  const message = { stopReason: 'error', errorMessage, provider: 'test', ...(rawStopReason && { rawStopReason }) };
  return classifyFailure(message as AssistantMessage, { onActivity() {}, ...exchange });
}

describe('a failure without an HTTP status, as adapters with their own transport give', () => {
  test.each([
    [
      'Throttling error: Too many tokens, please wait before trying again.',
      { kind: 'transient', reason: 'rate_limit' },
    ],
    ['Service unavailable: Bedrock is busy', { kind: 'transient', reason: 'overloaded' }],
    ['read ECONNRESET', { kind: 'transient', reason: 'network' }],
    ['WebSocket closed 1006', { kind: 'transient', reason: 'broken_stream' }],
    ['Validation error: Input is too long for requested model.', { kind: 'overflow' }],
    ['Validation error: toolConfig is wrong', { kind: 'permanent', code: 'model_failed' }],
    ['Monthly usage limit reached', { kind: 'permanent', code: 'model_failed' }],
    ['OAuth refresh failed for anthropic: fetch failed', { kind: 'transient', reason: 'credentials' }],
    ['OAuth refresh failed for anthropic: invalid_grant', { kind: 'permanent', code: 'no_api_key' }],
  ])('%s', (text, expected) => {
    expect(failure(text)).toEqual(expected);
  });
});

describe('a failure inside a stream', () => {
  const anthropic = (type: string, message = 'x') => JSON.stringify({ type: 'error', error: { type, message } });

  test.each([
    [anthropic('overloaded_error'), { kind: 'transient', reason: 'overloaded' }],
    [anthropic('api_error'), { kind: 'transient', reason: 'server_error' }],
    [anthropic('rate_limit_error'), { kind: 'transient', reason: 'rate_limit' }],
    [anthropic('invalid_request_error'), { kind: 'permanent', code: 'model_failed' }],
    [anthropic('invalid_request_error', 'prompt is too long: 9 tokens > 8 maximum'), { kind: 'overflow' }],
    [anthropic('billing_error'), { kind: 'permanent', code: 'model_failed' }],
    [
      'rate_limit_exceeded: Please try again in 11.054s.',
      { kind: 'transient', reason: 'rate_limit', retryAfterMs: 11_054 },
    ],
    ['Unhandled stop reason: model_context_window_exceeded', { kind: 'overflow' }],
    ['something nobody has seen before', { kind: 'transient', reason: 'broken_stream' }],
  ])('%s', (text, expected) => {
    expect(failure(text, { status: 200, headers: new Headers() })).toEqual(expected);
  });

  test('a refusal is permanent even if its explanation reads like an outage', () => {
    const text = 'The server error you describe cannot be discussed';
    expect(failure(text, { status: 200 }, 'refusal')).toEqual({ kind: 'permanent', code: 'model_failed' });
  });

  test('a broken body is a broken stream whatever the text says', () => {
    const exchange = { status: 200, bodyError: { error: new Error('x') } };
    expect(failure('odd', exchange)).toEqual({ kind: 'transient', reason: 'broken_stream' });
  });
});

test('a gateway that counts its queue in an overflow-like text is busy, not full', () => {
  expect(failure('queue length exceeds the limit of 100', { status: 503 })).toMatchObject({ kind: 'transient' });
});

test('Google’s per-minute quota, which names a delay and the billing page, is a rate limit', () => {
  const text = 'You exceeded your current quota, please check your plan and billing details. {"retryDelay": "34.2s"}';
  expect(failure(text, { status: 429 })).toEqual({
    kind: 'transient',
    reason: 'rate_limit',
    status: 429,
    retryAfterMs: 34_200,
  });
});

test('a stated overflow sent as 500 is overflow', () => {
  expect(failure('the request exceeds the available context size', { status: 500 })).toEqual({
    kind: 'overflow',
    status: 500,
  });
});

describe('retryAfterMs', () => {
  const now = Date.parse('2026-03-01T00:00:00Z');

  test.each([
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': 'Sun, 01 Mar 2026 00:00:20 GMT' }, 20_000],
    [{ 'retry-after': 'Sat, 28 Feb 2026 00:00:00 GMT' }, 0],
    [{ 'retry-after-ms': '99.2' }, 100],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '5 apples' }, undefined],
    [{ 'retry-after': '-3' }, undefined],
    [{}, undefined],
  ])('%j', (headers, expected) => {
    expect(retryAfterMs(new Headers(headers as Record<string, string>), '', now)).toBe(expected);
  });

  test.each([
    ['Please try again in 6.32s.', 6320],
    ['Please try again in 120ms.', 120],
    ['Please try again in 1m30s.', 90_000],
    ['Please try again in 2m.', 120_000],
    ['Please try again in a moment.', undefined],
  ])('%s', (text, expected) => {
    expect(retryAfterMs(undefined, text, now)).toBe(expected);
  });
});

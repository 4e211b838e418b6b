import { type AssistantMessage, isContextOverflow, isRetryableAssistantError } from '@earendil-works/pi-ai';
import type { HttpExchange } from './http-exchange.ts';
import type { Failure, TransientReason } from './outcome.ts';
import { retryAfterMs } from './retry-after.ts';

/**
 * Sorts a failed request. `message` is the adapter's error message (`stopReason: 'error'`), `exchange` the HTTP facts.
 * Facts decide before words: no connection, then an error status, then a structured error inside the stream, and only
 * then the text. What nobody can place is permanent if no answer had begun, else a broken stream, which is transient:
 * the caller's attempts are bounded, and a run must not end because of a glitch.
 */
export function classifyFailure(message: AssistantMessage, exchange: HttpExchange): Failure {
  const text = message.errorMessage ?? '';
  if (exchange.connectError !== undefined) return classifyConnection(exchange.connectError.error);
  if (exchange.status !== undefined && exchange.status >= 400) {
    return classifyStatus(message, text, exchange.status, exchange.headers, { status: exchange.status });
  }
  const streamed = streamedErrorStatus(text);
  if (streamed !== undefined) return classifyStatus(message, text, streamed, exchange.headers, {});
  return classifyText(message, text, exchange);
}

/** A URL that can never be fetched is the one connection failure that waiting does not heal. */
function classifyConnection(error: unknown): Failure {
  const words = `${describe(error)} ${describe((error as { cause?: unknown } | undefined)?.cause)}`;
  return /invalid url|unknown scheme|bad port|parse url/i.test(words)
    ? { kind: 'permanent', code: 'model_failed' }
    : { kind: 'transient', reason: 'network' };
}

/** By shape, not by class: errors of `fetch` may come from another realm. */
function describe(error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : '';
}

const busyStatuses = new Set([408, 409, 425, 429, 502, 503, 504, 529]);

function classifyStatus(
  message: AssistantMessage,
  text: string,
  status: number,
  headers: Headers | undefined,
  shown: { status?: number },
): Failure {
  if (status === 413 || (!busyStatuses.has(status) && isOverflowText(message, text))) {
    return { kind: 'overflow', ...shown };
  }
  const permanent: Failure = { kind: 'permanent', code: 'model_failed', ...shown };
  const wait = retryAfterMs(headers, text);
  if (status === 402 || ((status === 403 || status === 429) && isQuotaText(text, wait))) return permanent;
  // Both SDKs obey this header, so servers use it to say what the status cannot.
  const should = headers?.get('x-should-retry');
  if (should === 'false') return permanent;
  if (should !== 'true' && status < 500 && !busyStatuses.has(status)) return permanent;
  return transient(reasonOf(status), wait, shown);
}

function classifyText(message: AssistantMessage, text: string, exchange: HttpExchange): Failure {
  const permanent: Failure = { kind: 'permanent', code: 'model_failed' };
  // Such a text quotes what arrived, so its words say nothing about the failure.
  if (/^Could not parse \w+ SSE event|malformed server-sent event/.test(text))
    return transient('broken_stream', undefined);
  const raw = message.rawStopReason;
  if (raw !== undefined && /^(refusal|sensitive|content_filter|incomplete\.)/.test(raw)) return permanent;
  if (isOverflowText(message, text)) return { kind: 'overflow' };
  const wait = retryAfterMs(exchange.headers, text);
  // Bedrock's "Throttling error: Too many tokens" is in none of pi-ai's lists of retryable texts.
  if (/throttl/i.test(text)) return transient('rate_limit', wait);
  if (isQuotaText(text, wait)) return permanent;
  if (exchange.bodyError !== undefined) return transient('broken_stream', wait);
  if (exchange.status === undefined) {
    const setup = classifySetup(text);
    if (setup !== undefined) return setup;
  }
  if (isRetryableAssistantError({ ...message, stopReason: 'error', errorMessage: text })) {
    return transient(reasonOfText(text), wait);
  }
  if (exchange.status === undefined) return permanent;
  if (/unfinished tool call/i.test(text)) return transient('broken_stream', wait);
  const stated = raw !== undefined || /invalid_request|invalid_prompt|authentication|permission|not_found/i.test(text);
  return stated ? permanent : transient('broken_stream', wait);
}

/** Failures before any HTTP request: auth resolution, unknown provider. */
function classifySetup(text: string): Failure | undefined {
  if (/^(Provider is not configured|No API key for provider): /.test(text)) {
    return { kind: 'permanent', code: 'no_api_key' };
  }
  if (/^Unknown provider: /.test(text)) return { kind: 'permanent', code: 'unknown_model' };
  if (/^(OAuth (refresh|auth derivation)|Credential store \w+|API key auth) failed/.test(text)) {
    // A refused refresh token needs a new login; a store or token server out of reach needs time.
    return /invalid_grant|invalid_client|unauthorized|\b40[0-3]\b/i.test(text)
      ? { kind: 'permanent', code: 'no_api_key' }
      : { kind: 'transient', reason: 'credentials' };
  }
  return undefined;
}

/** Throttling is not overflow, whatever it says about tokens. */
function isOverflowText(message: AssistantMessage, text: string): boolean {
  return !/throttl/i.test(text) && isContextOverflow({ ...message, stopReason: 'error', errorMessage: text });
}

/**
 * Quota or billing exhausted, as pi-ai's own list knows it: with a retryable status in front of the text, only that
 * list can make it "not retryable". The list also knows words like "billing", which stand in the help links of plain
 * rate limits; a server that names a time to come back, or a rate limit code, means a rate limit.
 */
function isQuotaText(text: string, wait: number | undefined): boolean {
  if (/insufficient_quota/.test(text)) return true;
  if (wait !== undefined || /rate_limit_exceeded/.test(text)) return false;
  return !isRetryableAssistantError({ stopReason: 'error', errorMessage: `429 ${text}` } as AssistantMessage);
}

const streamedErrors: Record<string, number> = {
  invalid_request_error: 400,
  authentication_error: 401,
  billing_error: 402,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
};

/** The status that Anthropic's `error` event stands for: it comes after a 200, as JSON in the message. */
function streamedErrorStatus(text: string): number | undefined {
  const type = /^\s*\{\s*"type"\s*:\s*"error"[\s\S]*?"error"\s*:\s*\{[^}]*?"type"\s*:\s*"(\w+)"/.exec(text)?.[1];
  return type === undefined ? undefined : streamedErrors[type];
}

function transient(reason: TransientReason, wait: number | undefined, shown: { status?: number } = {}): Failure {
  return { kind: 'transient', reason, ...shown, ...(wait === undefined ? {} : { retryAfterMs: wait }) };
}

function reasonOf(status: number): TransientReason {
  if (status === 408 || status === 504) return 'timeout';
  if (status === 409) return 'conflict';
  if (status === 429) return 'rate_limit';
  return status === 503 || status === 529 ? 'overloaded' : 'server_error';
}

function reasonOfText(text: string): TransientReason {
  if (/rate.?limit|too many requests|\b429\b/i.test(text)) return 'rate_limit';
  if (/overload|capacity|busy|high demand|unavailable/i.test(text)) return 'overloaded';
  if (/server.?error|internal.?error|\b5\d\d\b/i.test(text)) return 'server_error';
  return /ended|terminated|closed|interrupted|cut short|before completion/i.test(text) ? 'broken_stream' : 'network';
}

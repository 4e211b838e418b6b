import type { Json } from './json.ts';

/**
 * Every error that crosses a border of Everturn carries one of these codes. They are stable: callers may branch on them.
 * What each means, whether it is retried and what to do stands in docs/errors.md.
 */
export const errorCodes = [
  'invalid_argument',
  'invalid_config',
  'unknown_agent',
  'unknown_model',
  'unknown_tool',
  'no_api_key',
  'message_too_large',
  'busy',
  'invalid_state',
  'model_failed',
  'output_limit',
  'turn_limit',
  'hook',
  'policy',
  'policy_changed',
  'tool_result_invalid',
  'fenced',
  'store',
  'store_full',
  'store_unavailable',
  'temporal_unavailable',
  'no_worker',
  'session_closed',
  'not_found',
  'cancelled',
  'internal',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

export interface EverturnErrorOptions {
  /** Whether the same call may succeed later without anybody changing anything. Default: false. */
  retryable?: boolean;
  cause?: unknown;
  /** Facts for programs, small and without secrets. */
  details?: Json;
}

/** The one error class of the public interface. `code` is stable; `message` says what is wrong and what to do next. */
export class EverturnError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly details: Json | undefined;

  constructor(code: ErrorCode, message: string, options: EverturnErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EverturnError';
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.details = options.details;
  }
}

/** True for an EverturnError of this or another copy of the package, optionally of one code. */
export function isEverturnError(error: unknown, code?: ErrorCode): error is EverturnError {
  return (
    error instanceof Error &&
    error.name === 'EverturnError' &&
    'code' in error &&
    (code === undefined || error.code === code)
  );
}

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && (errorCodes as readonly string[]).includes(value);
}

/** The text of anything that was thrown: an Error's message, else its string form (as pi shows it to the model). */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An error as it stands in the log and in results: plain data, no stack. */
export interface ErrorInfo {
  code: ErrorCode;
  message: string;
  details?: Json;
}

export function toErrorInfo(error: unknown, fallback: ErrorCode = 'internal'): ErrorInfo {
  if (isEverturnError(error)) {
    return {
      code: error.code,
      message: error.message,
      ...(error.details === undefined ? {} : { details: error.details }),
    };
  }
  return { code: fallback, message: errorText(error) };
}

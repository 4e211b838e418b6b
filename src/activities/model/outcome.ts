import type { AssistantMessage } from '@earendil-works/pi-ai';
import type { ErrorCode } from '../../common/errors.ts';

/**
 * Why a request may succeed if it is simply sent again.
 * `rate_limit` 429; `overloaded` 503, 529; `server_error` other 5xx; `timeout` 408; `conflict` 409;
 * `network` no HTTP answer at all; `stall` nothing arrived for `stallTimeoutMs`;
 * `broken_stream` the answer began and did not end as the protocol says; `credentials` a key or token could not be fetched.
 */
export type TransientReason =
  | 'rate_limit'
  | 'overloaded'
  | 'server_error'
  | 'timeout'
  | 'conflict'
  | 'network'
  | 'stall'
  | 'broken_stream'
  | 'credentials';

/** Codes of a permanent failure: no usable credential, no such provider, or the provider refused the request. */
export type PermanentCode = Extract<ErrorCode, 'no_api_key' | 'unknown_model' | 'model_failed'>;

/**
 * What became of one provider request. `message` is always complete data of its own (nothing changes it later) and
 * keeps whatever content arrived; its `stopReason` is never `pending`. `status` is the HTTP status of an error answer.
 */
export type ModelOutcome =
  /** The model answered: stopReason `stop`, `length` or `toolUse`. */
  | { kind: 'message'; message: AssistantMessage }
  /** The caller's signal fired first: stopReason `aborted`. */
  | { kind: 'aborted'; message: AssistantMessage }
  /** Send it again, not before `retryAfterMs` (milliseconds, uncapped, as the server asked) if that is given. */
  | {
      kind: 'transient';
      message: AssistantMessage;
      reason: TransientReason;
      status?: number;
      retryAfterMs?: number;
    }
  /** The conversation does not fit the model's window: compact it; sending it again is useless. */
  | { kind: 'overflow'; message: AssistantMessage; status?: number }
  /** Sending it again is useless: stopReason `error`, the reason is in `errorMessage`. */
  | { kind: 'permanent'; message: AssistantMessage; code: PermanentCode; status?: number };

/** A failed outcome without its message: what classification decides. */
export type Failure =
  | { kind: 'transient'; reason: TransientReason; status?: number; retryAfterMs?: number }
  | { kind: 'overflow'; status?: number }
  | { kind: 'permanent'; code: PermanentCode; status?: number };

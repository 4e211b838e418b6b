import { type ErrorCode, EverturnError } from '../../common/errors.ts';
import type { Json } from '../../common/json.ts';

/** What the main side starts a thread with. The log thread writes the log; the live thread does deltas and all reads. */
export interface ThreadOptions {
  role: 'log' | 'live';
  logFile: string;
  liveFile: string;
  busyTimeoutMs: number;
  maxPages?: number | undefined;
  /** Memory of the `DeltaOrder` that both threads keep. */
  deltaOrder: SharedArrayBuffer;
}

/** `after`: writes of deltas that must be done before what this call commits may be read. */
export type Call = { id: number; operation: string; args: string | unknown[]; after?: number } | { close: true };

export interface ErrorShape {
  code: ErrorCode;
  message: string;
  retryable: boolean;
  details?: Json;
}

/** The thread's first message says whether it could open the store; the rest answer calls. */
export type Answer =
  | { ready: true }
  | { failed: ErrorShape }
  | { id: number; value: Payload }
  | { id: number; error: ErrorShape };

/** Values cross as JSON text, which is cheaper than a structured clone and is what the store keeps anyway; bytes as such. */
export type Payload = { json: string } | { bytes: Uint8Array } | undefined;

export function encodeArgs(args: readonly unknown[]): string | unknown[] {
  const used = args.slice(0, args.findLastIndex((arg) => arg !== undefined) + 1);
  return used.some((arg) => arg instanceof Uint8Array) ? used : JSON.stringify(used);
}

export function decodeArgs(args: string | unknown[]): unknown[] {
  return typeof args === 'string' ? (JSON.parse(args) as unknown[]) : args;
}

export function encodeValue(value: unknown): Payload {
  if (value === undefined) return undefined;
  return value instanceof Uint8Array ? { bytes: value } : { json: JSON.stringify(value) };
}

export function decodeValue(payload: Payload): unknown {
  if (payload === undefined) return undefined;
  if ('json' in payload) return JSON.parse(payload.json);
  const { buffer, byteOffset, byteLength } = payload.bytes;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

export function encodeError(error: EverturnError): ErrorShape {
  const { code, message, retryable, details } = error;
  return { code, message, retryable, ...(details === undefined ? {} : { details }) };
}

export function decodeError(shape: ErrorShape): EverturnError {
  const { code, message, ...options } = shape;
  return new EverturnError(code, message, options);
}

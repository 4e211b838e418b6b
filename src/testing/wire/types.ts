import type { Json } from '../../common/json.ts';

/** The wire formats: `POST /v1/messages`, `POST /v1/chat/completions`, `POST /v1/responses`. */
export type Wire = 'anthropic' | 'openai-completions' | 'openai-responses';

/** One piece of an answer. A `chunks` array goes out as one delta for each string. */
export type ReplyBlock =
  | { type: 'text'; chunks: string[] }
  /** `signature` is Anthropic's signature, and the encrypted content of OpenAI responses. */
  | { type: 'thinking'; chunks: string[]; signature?: string }
  /** `id` default: `call_<position>`. `argumentChunks` default: the JSON of `arguments`, cut in two. */
  | { type: 'toolCall'; name: string; arguments: Json; id?: string; argumentChunks?: string[] }
  /** A keep-alive: Anthropic's `ping` event, an SSE comment for OpenAI. */
  | { type: 'ping' };

/** Tokens as they are counted on the wire; absent numbers are zero. `input` excludes cached tokens. */
export interface ReplyUsage {
  input?: number;
  output?: number;
  cacheRead?: number;
  /** Anthropic only. */
  cacheWrite?: number;
  /** Part of `output`. */
  reasoning?: number;
}

/** An error as a provider words it; the server wraps it as the wire format wants. */
export interface ReplyError {
  message: string;
  /** Such as `overloaded_error` or `insufficient_quota`. Default: `api_error` (Anthropic), `server_error` (OpenAI). */
  type?: string;
  /** OpenAI's `code`. Default: null. */
  code?: string;
}

/**
 * What goes wrong, and when: `after` deltas of content (pings count), or before the `head` of the HTTP answer.
 * `stall` sends nothing more, for ever; `break` destroys the socket; `end` ends the answer in good HTTP form but
 * without the last events; `malformed` sends an event whose data is not JSON, then stays open and silent; `error`
 * sends the format's error event and ends.
 */
export type ReplyFault =
  | { kind: 'stall' | 'break'; after: number | 'head' }
  | { kind: 'end' | 'malformed'; after: number }
  | { kind: 'error'; after: number; error: ReplyError };

/** An answer. Everything is optional: `{}` is an empty message that stops normally. */
export interface ProviderReply {
  content?: ReplyBlock[];
  /** In the wire's own words, such as `max_tokens`, `refusal`, `length`. Default: by content, tool use or a normal end. */
  stopReason?: string;
  usage?: ReplyUsage;
  /** Milliseconds before each delta. Default: 0. */
  delayMs?: number;
  fault?: ReplyFault;
  /** An HTTP error instead of a stream. A string `body` is sent as it is. */
  failure?: { status: number; headers?: Record<string, string> } & ({ error: ReplyError } | { body: string });
}

/** One SSE frame, ready to send. `delta` marks the frames that `after` counts and `delayMs` precedes. */
export interface Frame {
  text: string;
  delta: boolean;
}

/** How one wire format writes an answer. */
export interface WireFormat {
  frames(reply: ProviderReply, model: string, id: string): Frame[];
  errorFrame(error: ReplyError): string;
  errorBody(error: ReplyError): string;
  malformedFrame: string;
}

/** One SSE event; `event` is left out where the format has none. */
export function sse(data: Json, event?: string): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;
}

/** The pieces in which a tool call's arguments are sent. */
export function argumentChunks(block: Extract<ReplyBlock, { type: 'toolCall' }>): string[] {
  if (block.argumentChunks !== undefined) return block.argumentChunks;
  const json = JSON.stringify(block.arguments);
  const half = Math.ceil(json.length / 2);
  return [json.slice(0, half), json.slice(half)];
}

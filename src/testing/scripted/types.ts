import type { JsonObject, Message } from '@earendil-works/pi-ai';
import type { Json } from '../../common/json.ts';

/** A tool call of a reply. */
export interface ScriptedCall {
  name: string;
  /** Default: {}. */
  args?: JsonObject;
  /** Default: `call-<assistant messages before>-<index>`, so that a request made anew gets the same ids. */
  id?: string;
}

/** Tokens (and cost in USD) that a reply reports. What is absent is estimated: a quarter of the characters, no cost. */
export interface ScriptedUsage {
  input?: number;
  output?: number;
  cacheRead?: number;
  cacheWrite?: number;
  cost?: number;
}

/**
 * One reply of the script: plain JSON data, so that another process can play it too. Content is streamed in the order
 * thinking, text, calls; `{}` is an empty message that stops normally. A chunk is one delta event.
 */
export interface ScriptedReply {
  thinking?: string;
  text?: string;
  calls?: readonly ScriptedCall[];
  /** Default: `error` with an `error`, `toolUse` with calls, else `stop`. */
  stopReason?: 'stop' | 'toolUse' | 'length' | 'error';
  usage?: ScriptedUsage;

  /** Into how many deltas each block is cut (never more than it has characters). Default: 3. */
  chunks?: number;
  /** Milliseconds before each chunk. Default: 0. */
  chunkDelayMs?: number;

  /**
   * The request fails with this text, such as '429 rate limit', before its first token, or where `breakAfterChunks`
   * says. Default: '503 service unavailable' when `failTimes`, `breakAfterChunks` or stopReason 'error' ask for a failure.
   */
  error?: string;
  /** HTTP status that the failure shows through `onResponse`, with `errorHeaders` such as retry-after. Default: none. */
  errorStatus?: number;
  errorHeaders?: Record<string, string>;
  /** Only the first n of these requests go wrong (error, breakAfterChunks, hangForever), later ones get the reply. */
  failTimes?: number;
  /** The stream ends in the error after so many chunks. */
  breakAfterChunks?: number;
  /** Nothing ever comes. Only an abort ends it. */
  hangForever?: boolean;

  /**
   * The stream waits until this file exists. While it waits, `<file>.waiting` exists, so that a test can act at exactly
   * this place. A relative path is taken from the current folder.
   */
  holdUntilFile?: string;
  /** Where it waits: after so many chunks, or `all` of them, before the reply is complete. Default: 0, before the first token. */
  holdAfterChunks?: number | 'all';
}

/** A request as the model got it, which is also one line of the request log. */
export interface ScriptedRequest {
  /** "provider/model-id" */
  model: string;
  /** Which reply of the script it gets: the number of assistant messages in it. */
  reply: number;
  /** How often a request of this model, session and `reply` came, this one included. Counted over processes by the log. */
  attempt: number;
  systemPrompt: string;
  /** Without the leading system message. */
  messages: Message[];
  /** Names of the tools that it may call. */
  tools: string[];
  options: {
    sessionId?: string;
    reasoning?: string;
    temperature?: number;
    maxTokens?: number;
    cacheRetention?: string;
    headers?: Record<string, string | null>;
    metadata?: Json;
  };
  /** Set when an `onPayload` callback put another payload in place. */
  payload?: Json;
  pid: number;
  /** Milliseconds since 1970. */
  at: number;
}

/** Replies in order, the first for a request without assistant messages; or a function that makes one from the request. */
export type ScriptedReplies =
  | readonly ScriptedReply[]
  | ((request: ScriptedRequest) => ScriptedReply | Promise<ScriptedReply>);

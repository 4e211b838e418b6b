import type { Plain, PlainMessage } from './normal.ts';

/** One call of a hook or a tool, in the order of the calls. */
export interface HookCall {
  /** The document's name; `execute` for a tool. */
  hook: string;
  handler: number;
  /** Run and turn of the script in which it was called; a turn that has no script has the next number. */
  run: number;
  turn: number;
  /** Id of the tool call. */
  call?: string;
  /** What it was given. */
  seen: Plain;
  /** What it did, when that is not nothing. */
  move?: string;
  /** Set when the run was being aborted. */
  aborted?: true;
}

/** One request as the provider got it. */
export interface SeenRequest {
  run: number;
  model: string;
  reasoning: string;
  systemPrompt: string;
  messages: PlainMessage[];
  tools: string[];
  options: Plain;
  payload: Plain;
}

/** An event in pi's names: its type and its key fields. */
export interface SeenEvent {
  type: string;
  [field: string]: Plain | undefined;
}

/** How one run ended. */
export interface RunEnd {
  status: string;
  /** Text of the error when it was thrown to the caller. */
  thrown?: string;
}

/** What one side made of a scenario. */
export interface Observation {
  transcript: { type: string; [field: string]: Plain | undefined }[];
  requests: SeenRequest[];
  calls: HookCall[];
  events: SeenEvent[];
  ends: RunEnd[];
  /** What the policies were asked, in order. */
  policyCalls: Plain[];
}

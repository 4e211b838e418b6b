/** Client code: what talks to sessions. */

export type { SessionEvent, StreamDelta } from '../common/events.ts';
export type { ClientOptions } from './agent-client.ts';
export { AgentClient } from './agent-client.ts';
export type { EventsOptions } from './events.ts';
export type { RunResult } from './run-result.ts';
export type { PromptOptions, SessionOptions, SessionStats } from './session-handle.ts';
export { SessionHandle } from './session-handle.ts';

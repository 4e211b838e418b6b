import type { NewEntry, SessionTreeEntry, ThinkingLevel } from './entries.ts';
import type { ErrorInfo } from './errors.ts';
import type { Json } from './json.ts';
import type {
  AgentMessage,
  AssistantMessage,
  ImageContent,
  TextContent,
  ToolResultMessage,
  Usage,
} from './messages.ts';

/** How a run ended. `interrupted`: its workflow was closed from outside, and a later owner ended it in the log. */
export type RunStatus = 'done' | 'error' | 'aborted' | 'interrupted';

/** The final result of a tool as hooks and readers see it (pi's AgentToolResult with isError beside it). */
export interface ToolOutcome {
  content: (TextContent | ImageContent)[];
  details?: unknown;
  usage?: Usage;
  terminate?: boolean;
}

/** What became of a tool call, beside the text that the model is told. */
export type ToolOutcomeKind =
  | 'completed'
  | 'failed'
  | 'not_found'
  | 'invalid_arguments'
  | 'blocked'
  | 'aborted'
  | 'truncated'
  | 'unknown';

/** A message that waits in a queue, with the id that its entry will have. */
export interface QueuedMessage {
  id: string;
  message: AgentMessage;
}

/** Ids of the queued messages, in order. */
export interface QueueIds {
  steer: string[];
  followUp: string[];
  nextTurn: string[];
}

/** Queued messages, in order. */
export interface QueueContents {
  steer: QueuedMessage[];
  followUp: QueuedMessage[];
  nextTurn: QueuedMessage[];
}

/**
 * Events as they stand in the log. Messages are named by entry id, not repeated: the end of a run does not carry the
 * transcript. Readers get them joined with their messages as `SessionEvent`.
 */
export type LogEvent =
  | { type: 'session_open'; epoch: number; agent: string }
  | { type: 'agent_start' }
  | { type: 'turn_start' }
  | { type: 'turn_end'; messageId: string; toolResultIds: string[] }
  | { type: 'agent_end'; status: RunStatus; error?: ErrorInfo }
  | { type: 'settled'; nextTurnCount: number }
  | { type: 'tool_execution_start'; toolCallId: string; toolName: string; args: unknown }
  | {
      type: 'tool_execution_end';
      toolCallId: string;
      toolName: string;
      result: ToolOutcome;
      isError: boolean;
      outcome: ToolOutcomeKind;
    }
  /** `added`: the messages that stand in a queue for the first time, so that the log has each text once. */
  | ({ type: 'queue_update'; added: QueuedMessage[] } & QueueIds)
  | { type: 'abort'; clearedSteer: QueuedMessage[]; clearedFollowUp: QueuedMessage[] }
  | { type: 'signal_rejected'; signal: string; reason: string }
  | { type: 'after_provider_response'; status: number; headers: Record<string, string> }
  /** What one handler decided, how long it took, and in how many tries. */
  | { type: 'hook'; hook: string; handler: number; outcome: Json; durationMs: number; attempt: number };

/**
 * One thing to append. `key` is unique in the session: appending it again changes nothing, what is stored wins. `turn`:
 * the turn it belongs to, when that is not the turn of the effect it travels with.
 */
export type NewRecord =
  | { kind: 'entry'; entry: NewEntry; turn?: number }
  | { kind: 'event'; key: string; event: LogEvent; turn?: number };

/** A record of the log as stored. `hash` covers the record and the hash before it. */
export interface LogRecord {
  /** 0, 1, 2 … without gaps in a session. */
  offset: number;
  /** Milliseconds since 1970, by the clock of the writer. */
  at: number;
  runId: string | null;
  turn: number | null;
  key: string;
  body: { kind: 'entry'; entry: SessionTreeEntry } | { kind: 'event'; event: LogEvent };
  hash: string;
}

/** What one delta of the live stream adds. `reset`: an attempt begins; forget what earlier attempts of the entry sent. */
export type StreamDelta =
  | { type: 'reset' }
  | { type: 'text_start' | 'thinking_start'; contentIndex: number }
  | { type: 'text_delta' | 'thinking_delta' | 'toolcall_delta'; contentIndex: number; delta: string }
  | { type: 'text_end' | 'thinking_end'; contentIndex: number }
  | { type: 'toolcall_start'; contentIndex: number; id: string; name: string }
  | { type: 'toolcall_end'; contentIndex: number }
  | { type: 'tool_update'; toolCallId: string; toolName: string; partialResult: unknown };

/** A delta with its place: attempt and number within the entry's attempt, from 0. A reader drops lower attempts. */
export interface StreamRecord {
  seq: number;
  runId: string;
  entryId: string;
  attempt: number;
  n: number;
  delta: StreamDelta;
}

interface Place {
  /** Offset of the log record; absent on live events, which have no place in the log. */
  offset?: number;
  runId?: string;
  turn?: number;
}

/** What readers of a session get: pi's events (pi-semantics §1.8 and §2.6), in the order of the log, and live deltas. */
export type SessionEvent = Place &
  (
    | { type: 'session_open'; epoch: number; agent: string }
    | { type: 'agent_start' }
    | { type: 'agent_end'; status: RunStatus; error?: ErrorInfo; messages: AgentMessage[] }
    | { type: 'turn_start' }
    | { type: 'turn_end'; message: AssistantMessage; toolResults: ToolResultMessage[] }
    | { type: 'message_start'; entryId: string; message: AgentMessage }
    | { type: 'message_reset'; entryId: string; attempt: number }
    | { type: 'message_update'; entryId: string; attempt: number; delta: StreamDelta; message: AssistantMessage }
    | { type: 'message_end'; entryId: string; message: AgentMessage }
    | { type: 'tool_execution_start'; toolCallId: string; toolName: string; args: unknown }
    | { type: 'tool_execution_update'; toolCallId: string; toolName: string; partialResult: unknown }
    | {
        type: 'tool_execution_end';
        toolCallId: string;
        toolName: string;
        result: ToolOutcome;
        isError: boolean;
        outcome: ToolOutcomeKind;
      }
    | ({ type: 'queue_update' } & QueueContents)
    | { type: 'abort'; clearedSteer: QueuedMessage[]; clearedFollowUp: QueuedMessage[] }
    | { type: 'settled'; nextTurnCount: number }
    | { type: 'entry'; entry: SessionTreeEntry }
    | { type: 'signal_rejected'; signal: string; reason: string }
    | { type: 'after_provider_response'; status: number; headers: Record<string, string> }
    | { type: 'hook'; hook: string; handler: number; outcome: Json; durationMs: number; attempt: number }
    /** After turn_end, when changes of settings that waited for the turn border have been written. */
    | { type: 'save_point'; hadPendingMutations: boolean }
    | { type: 'model_update'; model: string; previousModel: string | null; source: 'set' }
    | { type: 'thinking_level_update'; level: ThinkingLevel; previousLevel: ThinkingLevel | null }
    | { type: 'tools_update'; activeToolNames: string[]; previousActiveToolNames: string[] | null; source: 'set' }
  );

/** What tells a record from all others of its session: written twice, it stands once. */
export function keyOf(record: NewRecord): string {
  return record.kind === 'entry' ? record.entry.id : record.key;
}

/** The entries that messages become. */
export function messageRecords(messages: readonly QueuedMessage[]): NewRecord[] {
  return messages.map(({ id, message }) => ({
    kind: 'entry',
    entry: { type: 'message', id, timestamp: new Date(message.timestamp).toISOString(), message },
  }));
}

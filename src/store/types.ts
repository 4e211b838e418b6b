import type { SessionTreeEntry, ThinkingLevel } from '../common/entries.ts';
import type { ErrorInfo } from '../common/errors.ts';
import type {
  LogRecord,
  NewRecord,
  RunStatus,
  StreamDelta,
  StreamRecord,
  ToolOutcome,
  ToolOutcomeKind,
} from '../common/events.ts';
import type { Json } from '../common/json.ts';
import type { UsageTotals } from '../common/usage.ts';

/**
 * Who writes. Every write of an effect carries it, and the store refuses it (`fenced`) unless `workflowRunId` owns the
 * session and no later attempt of the same effect has begun.
 */
export interface Fence {
  sessionId: string;
  /** Temporal run id of the workflow run that scheduled the effect. */
  workflowRunId: string;
  /** Names the effect in the session, the same on every attempt and after `workflow reset`: "RUN/t3/model". */
  effect: string;
  /** Temporal's attempt, from 1. */
  attempt: number;
  /** The run that the effect works for, if any; it decides which abort concerns it. */
  runId?: string;
  turn?: number;
}

export interface SessionDefaults {
  agent: string;
  model: string;
  thinkingLevel: ThinkingLevel;
  /** null: all tools of the agent. */
  activeTools: string[] | null;
}

export interface OpenSessionRequest {
  sessionId: string;
  workflowRunId: string;
  defaults: SessionDefaults;
  /** The run that goes on over continue-as-new; every other open run is ended as interrupted. */
  continuingRunId?: string;
  /**
   * True: Temporal has confirmed that this workflow run is the living one, so it takes the session back even after
   * another one has opened it (a start that was held up on a stalled worker).
   */
  living?: boolean;
}

export interface OpenedSession {
  epoch: number;
  leaf: string | null;
  agent: string;
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[] | null;
  /** Runs of earlier owners that this call ended as interrupted. */
  interruptedRuns: string[];
}

export interface BegunEffect {
  /** Attempts of the effect so far, this one included. Unlike Temporal's number it goes on after `workflow reset`. */
  attempts: number;
  /** Set when an earlier attempt (or a workflow run before a reset) finished the effect: adopt it, do nothing again. */
  result?: Json;
  /** Outcomes kept by `saveStep`, by name. */
  steps: Record<string, Json>;
  /** True when an abort control record names the run. */
  abortRequested: boolean;
  /** True: the run that the effect works for is over, and nothing was written. */
  runEnded?: boolean;
  /** What became of `first`, when it was written. */
  committed?: CommitResult;
}

/** What one transaction of an effect does, all of it or nothing. Parts are applied in the order of the fields. */
export interface Commit {
  /**
   * Reserves the run: the first commit of a run carries it. When the run is known already with another token, nothing of
   * this commit is applied and `duplicateRun` is returned; with the same token (a retry, a reset) it goes on.
   */
  openRun?: { runId: string; token: string };
  records?: NewRecord[];
  /** Asks to enter a tool. Part of the commit that begins an effect. */
  claim?: ClaimRequest;
  /** Settings of the session from now on (the entries that say so are among `records`). */
  settings?: { model?: string; thinkingLevel?: ThinkingLevel; activeTools?: string[] | null };
  /** Registers the calls of an assistant message, so that the batch can be closed. */
  batch?: BatchRecord;
  /** Settles calls of batches, in this order. */
  settle?: SettledCall[];
  /** Appended after the settled calls. */
  after?: NewRecord[];
  /** Keeps what the model was given, as a delta to the request before. */
  request?: RequestRecord;
  usage?: UsageTotals;
  /** Ends the run. */
  closeRun?: { runId: string; status: RunStatus; error?: ErrorInfo };
  /**
   * Finishes the effect: a later `beginEffect` gets this back. Not kept when all calls of `settle` were settled already:
   * what the model was told of them counts, and the next attempt finds it there.
   */
  result?: Json;
}

/** The calls of one assistant message, in its order. */
export interface BatchRecord {
  entryId: string;
  calls: { index: number; toolCallId: string; toolName: string; resultEntryId: string; args: unknown }[];
}

/**
 * The end of one call. In one transaction: the claim is settled, `tool_execution_end` is appended (key
 * "ENTRY/INDEX/end"), and, when it is `sequential` or the last open call of the batch, the tool result entries are
 * appended in source order. A call that is settled already keeps what it has.
 */
export interface SettledCall {
  entryId: string;
  index: number;
  outcome: ToolOutcomeKind;
  result: ToolOutcome;
  isError: boolean;
  /** Milliseconds since 1970, stands in the tool result message. */
  timestamp: number;
  /** True: this call's result entry is appended at once (pi's sequential batches). Default: when the whole batch is settled. */
  sequential?: boolean;
  /** Appended right before this call's end, in the same transaction: its start, and starts of calls before it. */
  before?: NewRecord[];
}

export type CommitResult =
  | {
      leaf: string | null;
      duplicateRun?: undefined;
      /** Calls of `settle`, in its order, that were settled already and keep what they had. Absent: none. */
      settledBefore?: SettledCall[];
      /** The answer to `claim`. */
      claim?: ClaimResult;
      /** The effect was finished already, with this result: nothing of the commit was written. */
      adopted?: Json;
    }
  | { leaf: string | null; duplicateRun: RunRow; settledBefore?: undefined; claim?: undefined; adopted?: undefined };

export interface RequestRecord {
  runId: string;
  turn: number;
  /** Every message that the model was given, in order: an entry of the session or a blob (changed by a hook). */
  messages: ({ entry: string } | { blob: string })[];
  /** Digest of the blob with system prompt, tools and options. */
  frame: string;
}

export interface RecordPlace {
  offset: number;
  runId: string | null;
}

export interface StoredBatch {
  calls: (BatchRecord['calls'][number] & {
    claimed: boolean;
    settled?: SettledCall;
    progress?: Json;
    lateResult?: Json;
  })[];
}

/** Before a tool is entered. */
export interface ClaimRequest {
  entryId: string;
  index: number;
  toolName: string;
  replay: 'never' | 'safe' | 'keyed';
  /** Digest of the exact arguments. */
  argsDigest: string;
  /** Appended in the same transaction, when its key is not there yet. */
  start?: NewRecord;
  /** True: the tool is not to be entered now, only asked about. The same when the run is aborted. */
  withhold?: boolean;
}

/**
 * `entered`: run the tool. `again`: a worker died in it, and its replay kind allows another entry. `settled`: there is a
 * result, adopt it. `unknown`: entered before and must not be entered again; `progress` is what it last reported.
 * `withheld`: not to be entered now; `before` says whether it was entered earlier, and so may have taken effect.
 */
export type ClaimResult =
  | { state: 'entered' }
  | { state: 'again'; entries: number; progress?: Json }
  | { state: 'settled'; settled: SettledCall }
  | { state: 'unknown'; progress?: Json }
  | { state: 'withheld'; before: boolean };

export interface RunKey {
  sessionId: string;
  runId: string;
}

export interface RunRow extends RunKey {
  status: RunStatus | 'open';
  error?: ErrorInfo;
  usage: UsageTotals;
  turns: number;
  startedAt: number;
  endedAt?: number;
  /** Offset of its first record, and of its last when it has ended. */
  firstOffset: number;
  lastOffset?: number;
  /** Entry id of its last assistant message, if any. */
  lastAssistantId?: string;
}

export interface SessionRow extends SessionDefaults {
  sessionId: string;
  epoch: number;
  leaf: string | null;
  /** Number of log records. */
  length: number;
  headHash: string;
  createdAt: number;
  /** Milliseconds since 1970 of the last write, to a second. */
  updatedAt: number;
  usage: UsageTotals;
  runs: number;
  openRunId?: string;
}

export interface EffectCounts {
  effects: number;
  attempts: number;
  byKind: Record<string, { effects: number; attempts: number }>;
}

export interface ControlRecord {
  sessionId: string;
  runId: string;
  kind: 'abort';
  at: number;
}

export interface Delta {
  sessionId: string;
  runId: string;
  entryId: string;
  attempt: number;
  n: number;
  delta: StreamDelta;
}

/**
 * The permanent home of sessions. All methods are safe to repeat; all writes of effects are fenced. Errors are
 * EverturnError: `fenced` (not retryable), `store_unavailable` and `store_full` (retryable), `not_found`, `store`.
 */
export interface Store {
  /** Takes ownership with a new epoch, and ends in the log what earlier owners left open. */
  openSession(request: OpenSessionRequest): Promise<OpenedSession>;
  /**
   * Begins an attempt: later writes of earlier attempts are refused. `first` is written in the same transaction, unless
   * the effect has its result or its run is over; a claim in it is withheld when the run is aborted. It survives this
   * process when it is answered, and the power's end only if it claims a tool that is not `safe`: a retry writes it
   * again. When it opens a run that is known with another token, the effect of the same name was another run's, so its
   * result is not given back.
   */
  beginEffect(fence: Fence, first?: Commit): Promise<BegunEffect>;
  /** Keeps one outcome inside an effect, so that a retry does not ask again. The first write of a name wins and is returned. */
  saveStep(fence: Fence, name: string, outcome: Json): Promise<Json>;
  commit(fence: Fence, commit: Commit): Promise<CommitResult>;
  /** Last progress of a running tool, kept with its claim. */
  saveProgress(fence: Fence, entryId: string, index: number, progress: Json): Promise<void>;
  /** A true result that came after its call was settled otherwise: kept with the claim, never in the transcript. Not fenced. */
  addLateResult(sessionId: string, entryId: string, index: number, late: Json): Promise<void>;

  requestAbort(sessionId: string, runId: string): Promise<void>;
  /** Abort records of open runs of these sessions. One query. */
  readControls(sessionIds: string[]): Promise<ControlRecord[]>;

  readSession(sessionId: string): Promise<SessionRow | undefined>;
  listSessions(options?: { limit?: number }): Promise<SessionRow[]>;
  readRun(sessionId: string, runId: string): Promise<RunRow | undefined>;
  /** Those of these runs that have ended, in any order. */
  readEndedRuns(keys: RunKey[]): Promise<RunRow[]>;
  listRuns(sessionId: string): Promise<RunRow[]>;
  /** Entries from the root (or from `afterEntryId`, exclusive) to `leaf`, oldest first. `afterEntryId` off the path: whole path. */
  readPath(
    sessionId: string,
    leaf: string,
    afterEntryId?: string,
  ): Promise<{ entries: SessionTreeEntry[]; complete: boolean }>;
  readEntries(sessionId: string, ids: string[]): Promise<SessionTreeEntry[]>;
  readLog(sessionId: string, fromOffset: number, limit: number): Promise<LogRecord[]>;
  /** Where the records of these keys stand, in the order of the keys; null for a key that the session's log does not have. */
  findRecords(sessionId: string, keys: string[]): Promise<(RecordPlace | null)[]>;
  readBatch(sessionId: string, entryId: string): Promise<StoredBatch | undefined>;
  readRequest(sessionId: string, runId: string, turn: number): Promise<RequestRecord | undefined>;
  countEffects(sessionId: string, runId?: string): Promise<EffectCounts>;
  /** Recomputes the hash chain. */
  verify(sessionId: string): Promise<{ ok: true; length: number } | { ok: false; offset: number; reason: string }>;

  putBlob(digest: string, data: Uint8Array): Promise<void>;
  getBlob(digest: string): Promise<Uint8Array | undefined>;

  /**
   * Calls are carried out in their order. A commit that is asked for after the call, even before it is answered, is not
   * readable before the deltas are, unless they cannot be written within a quarter of a second.
   */
  appendDeltas(deltas: Delta[]): Promise<void>;
  readDeltas(sessionId: string, afterSeq: number, limit: number): Promise<StreamRecord[]>;
  /** Number of the last delta of the session, 0 when there is none. */
  lastDeltaSeq(sessionId: string): Promise<number>;
  /** Deletes live deltas older than `beforeMs` of messages and calls that have ended, or whose run has. The log keeps what they became. */
  pruneDeltas(beforeMs: number): Promise<number>;

  close(): Promise<void>;
}

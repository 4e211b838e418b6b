import type { Generated, Kysely, Selectable } from 'kysely';

/** Version of the tables below. A store with a higher one is refused: an older Everturn would break what it cannot see. */
export const schemaVersion = 1;

export interface SessionsTable {
  session_id: string;
  agent: string;
  model: string;
  thinking_level: string;
  /** JSON array, or null for all tools of the agent. */
  active_tools: string | null;
  epoch: number;
  owner_run: string;
  leaf: string | null;
  length: number;
  head_hash: string;
  /** JSON of UsageTotals. */
  usage: string;
  runs: number;
  created_at: number;
  updated_at: number;
}

/** The log. `body` is canonical JSON and part of the hash byte by byte. Nothing here is ever updated or deleted. */
export interface RecordsTable {
  session_id: string;
  offset: number;
  at: number;
  run_id: string | null;
  turn: number | null;
  key: string;
  hash: string;
  body: string;
}

/** Small rows to walk the session tree on; `verify` compares them with the log. */
export interface EntriesTable {
  session_id: string;
  entry_id: string;
  parent_id: string | null;
  offset: number;
}

export interface RunsTable {
  session_id: string;
  run_id: string;
  status: string;
  error: string | null;
  usage: string;
  turns: number;
  /** Of the commit that reserved the run: it tells a retry from a second prompt with the same id. */
  token: string;
  started_at: number;
  ended_at: number | null;
  /** Workflow run that ended it, set only when it was interrupted. */
  interrupted_by: string | null;
  first_offset: number;
  last_offset: number | null;
  last_assistant_id: string | null;
}

export interface EffectsTable {
  session_id: string;
  effect: string;
  kind: string;
  run_id: string | null;
  /** Attempts of one workflow run are comparable; after a reset they begin at 1 again. */
  workflow_run: string;
  attempt: number;
  attempts: number;
  started_at: number;
  finished_at: number | null;
  result: string | null;
}

export interface StepsTable {
  session_id: string;
  effect: string;
  name: string;
  outcome: string;
}

/** Tool calls of assistant messages, with claim, progress and outcome. */
export interface CallsTable {
  session_id: string;
  entry_id: string;
  call_index: number;
  run_id: string | null;
  turn: number | null;
  tool_call_id: string;
  tool_name: string;
  result_entry_id: string;
  args: string;
  /** How often the tool was entered. */
  entries: number;
  replay: string | null;
  args_digest: string | null;
  claimed_at: number | null;
  progress: string | null;
  /** JSON of SettledCall. */
  settled: string | null;
  outcome: string | null;
  /** 1 when its tool result entry is in the log. */
  appended: number;
  late_result: string | null;
}

/** What models were given, each as a delta to the row before it (`seq` - 1) of the session. */
export interface RequestsTable {
  session_id: string;
  seq: number;
  run_id: string;
  turn: number;
  kept: number;
  appended: string;
  frame: string;
}

export interface ControlsTable {
  session_id: string;
  run_id: string;
  kind: string;
  at: number;
}

export interface BlobsTable {
  digest: string;
  data: Uint8Array;
  at: number;
}

export interface Tables {
  meta: { key: string; value: string };
  sessions: SessionsTable;
  records: RecordsTable;
  entries: EntriesTable;
  runs: RunsTable;
  effects: EffectsTable;
  steps: StepsTable;
  calls: CallsTable;
  requests: RequestsTable;
  controls: ControlsTable;
  blobs: BlobsTable;
}

export interface DeltasTable {
  seq: Generated<number>;
  session_id: string;
  run_id: string;
  entry_id: string;
  attempt: number;
  n: number;
  at: number;
  delta: string;
}

/** Live deltas lie in a database of their own: they may be lost with the power, and must not wait for the log's fsync. */
export interface LiveTables {
  meta: { key: string; value: string };
  deltas: DeltasTable;
}

/** A transaction, as every operation gets it. */
export type Db = Kysely<Tables>;
export type LiveDb = Kysely<LiveTables>;

export type SessionsRow = Selectable<SessionsTable>;
export type RunsRow = Selectable<RunsTable>;
export type DeltasRow = Selectable<DeltasTable>;
export type CallsRow = Selectable<CallsTable>;
export type EffectsRow = Selectable<EffectsTable>;
export type RecordsRow = Selectable<RecordsTable>;

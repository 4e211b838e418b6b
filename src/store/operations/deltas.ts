import type { StreamDelta, StreamRecord } from '../../common/events.ts';
import type { Db, LiveDb } from '../schema.ts';
import type { Delta } from '../types.ts';
import { chunksOf } from './chunks.ts';

/** Appends live deltas in order. A batch that is sent twice is stored twice: readers drop numbers they have seen. */
export async function appendDeltas(db: LiveDb, deltas: Delta[]): Promise<void> {
  const at = Date.now();
  const rows = deltas.map((delta) => ({
    session_id: delta.sessionId,
    run_id: delta.runId,
    entry_id: delta.entryId,
    attempt: delta.attempt,
    n: delta.n,
    at,
    delta: JSON.stringify(delta.delta),
  }));
  for (const chunk of chunksOf(rows, 100)) await db.insertInto('deltas').values(chunk).execute();
}

export async function readDeltas(
  db: LiveDb,
  sessionId: string,
  afterSeq: number,
  limit: number,
): Promise<StreamRecord[]> {
  const rows = await db
    .selectFrom('deltas')
    .select(['seq', 'run_id', 'entry_id', 'attempt', 'n', 'delta'])
    .where('session_id', '=', sessionId)
    .where('seq', '>', afterSeq)
    .orderBy('seq')
    .limit(limit)
    .execute();
  return rows.map((row) => ({
    seq: row.seq,
    runId: row.run_id,
    entryId: row.entry_id,
    attempt: row.attempt,
    n: row.n,
    delta: JSON.parse(row.delta) as StreamDelta,
  }));
}

export async function lastDeltaSeq(db: LiveDb, sessionId: string): Promise<number> {
  const row = await db
    .selectFrom('deltas')
    .select((eb) => eb.fn.max('seq').as('seq'))
    .where('session_id', '=', sessionId)
    .executeTakeFirst();
  return row?.seq ?? 0;
}

export interface DeltaRun {
  sessionId: string;
  runId: string;
}

/** Runs that have deltas, all of them written before `beforeMs`. */
export async function listDeltaRuns(db: LiveDb, beforeMs: number): Promise<DeltaRun[]> {
  const rows = await db
    .selectFrom('deltas')
    .select(['session_id', 'run_id'])
    .groupBy(['session_id', 'run_id'])
    .having((eb) => eb.fn.max('at'), '<', beforeMs)
    .execute();
  return rows.map((row) => ({ sessionId: row.session_id, runId: row.run_id }));
}

/** Those of the runs that have ended, or that the log does not know. */
export async function selectEndedRuns(db: Db, runs: DeltaRun[]): Promise<DeltaRun[]> {
  const ended: DeltaRun[] = [];
  for (const run of runs) {
    const open = await db
      .selectFrom('runs')
      .select('run_id')
      .where('session_id', '=', run.sessionId)
      .where('run_id', '=', run.runId)
      .where('status', '=', 'open')
      .executeTakeFirst();
    if (open === undefined) ended.push(run);
  }
  return ended;
}

export async function deleteDeltas(db: LiveDb, runs: DeltaRun[]): Promise<number> {
  let deleted = 0;
  for (const run of runs) {
    const result = await db
      .deleteFrom('deltas')
      .where('session_id', '=', run.sessionId)
      .where('run_id', '=', run.runId)
      .executeTakeFirst();
    deleted += Number(result.numDeletedRows);
  }
  return deleted;
}

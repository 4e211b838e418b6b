import type { StreamDelta, StreamRecord } from '../../common/events.ts';
import type { Db, DeltasRow, LiveDb, RunsRow } from '../schema.ts';
import type { Delta } from '../types.ts';
import { chunksOf } from './chunks.ts';
import { insertStatement, statement } from './statement.ts';

const insertDeltas = insertStatement<Omit<DeltasRow, 'seq'>, LiveDb>(
  ['session_id', 'run_id', 'entry_id', 'attempt', 'n', 'at', 'delta'],
  (db, rows) => db.insertInto('deltas').values(rows),
);

/** A run is open as long as its row says so; what it is at work on has no entry yet. */
const selectOpen = statement<Pick<RunsRow, 'session_id' | 'run_id'> & { entry_id: string }, Pick<RunsRow, 'run_id'>>(
  (db, arg) =>
    db
      .selectFrom('runs')
      .select('run_id')
      .where('session_id', '=', arg('session_id'))
      .where('run_id', '=', arg('run_id'))
      .where('status', '=', 'open')
      .where(({ not, exists, selectFrom }) =>
        not(
          exists(
            selectFrom('entries')
              .select('entry_id')
              .where('session_id', '=', arg('session_id'))
              .where('entry_id', '=', arg('entry_id')),
          ),
        ),
      ),
);

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
  for (const chunk of chunksOf(rows, 50)) await insertDeltas(db, chunk);
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

/** A message or a call that deltas are of. */
export interface DeltaSubject {
  sessionId: string;
  runId: string;
  entryId: string;
}

/** Some of the oldest deltas: what they are of, and how far they go. */
export interface OldDeltas {
  subjects: DeltaSubject[];
  beforeMs: number;
  /** Numbers after the first and up to the last. */
  after: number;
  upTo: number;
}

/** Deltas that are written meanwhile wait for one page. */
const pruneRows = 1_000;

/**
 * What is old among the next deltas after a number: written before `beforeMs`. Undefined at the end, and where a whole
 * page is newer.
 */
export async function readOldDeltas(db: LiveDb, beforeMs: number, after: number): Promise<OldDeltas | undefined> {
  const rows = await db
    .selectFrom('deltas')
    .select(['seq', 'session_id', 'run_id', 'entry_id', 'at'])
    .where('seq', '>', after)
    .orderBy('seq')
    .limit(pruneRows)
    .execute();
  const old = rows.filter((row) => row.at < beforeMs);
  const last = rows.at(-1);
  if (last === undefined || old.length === 0) return undefined;
  const subjects = new Map<string, DeltaSubject>();
  for (const { session_id: sessionId, run_id: runId, entry_id: entryId } of old) {
    subjects.set(`${sessionId}\n${entryId}`, { sessionId, runId, entryId });
  }
  return { subjects: [...subjects.values()], beforeMs, after, upTo: last.seq };
}

/** Those whose message or result stands in the log, and those of runs that have ended or that the log does not know. */
export async function selectEnded(db: Db, subjects: DeltaSubject[]): Promise<DeltaSubject[]> {
  const ended: DeltaSubject[] = [];
  for (const subject of subjects) {
    const [open] = await selectOpen(db, {
      session_id: subject.sessionId,
      run_id: subject.runId,
      entry_id: subject.entryId,
    });
    if (open === undefined) ended.push(subject);
  }
  return ended;
}

export async function deleteDeltas(db: LiveDb, { subjects, beforeMs, after, upTo }: OldDeltas): Promise<number> {
  let deleted = 0;
  for (const [sessionId, own] of Map.groupBy(subjects, (subject) => subject.sessionId)) {
    for (const chunk of chunksOf(own, 500)) {
      const entryIds = chunk.map(({ entryId }) => entryId);
      const result = await db
        .deleteFrom('deltas')
        .where('session_id', '=', sessionId)
        .where('seq', '>', after)
        .where('seq', '<=', upTo)
        .where('at', '<', beforeMs)
        .where('entry_id', 'in', entryIds)
        .executeTakeFirst();
      deleted += Number(result.numDeletedRows);
    }
  }
  return deleted;
}

import type { ErrorInfo } from '../../common/errors.ts';
import { addTotals, noUsage, type UsageTotals } from '../../common/usage.ts';
import type { Db, RunsRow, SessionsRow } from '../schema.ts';
import type { Commit, RunKey, RunRow } from '../types.ts';
import { chunksOf } from './chunks.ts';
import { listStatement, statement } from './statement.ts';

type RunsKey = Pick<RunsRow, 'session_id' | 'run_id'>;

const selectByKey = statement<RunsKey, RunsRow>((db, arg) =>
  db.selectFrom('runs').selectAll().where('session_id', '=', arg('session_id')).where('run_id', '=', arg('run_id')),
);

/** Session id and run id in turns: each pair is found by the primary key. */
const selectEnded = listStatement<string, object, RunsRow>((db, pairs) =>
  db
    .selectFrom('runs')
    .selectAll()
    .where('status', '!=', 'open')
    .where((eb) =>
      eb.or(chunksOf(pairs, 2).map(([sessionId = '', runId = '']) => eb.and({ session_id: sessionId, run_id: runId }))),
    ),
);

const updateUsage = statement<RunsKey & Pick<RunsRow, 'usage'>, unknown>((db, arg) =>
  db
    .updateTable('runs')
    .set({ usage: arg('usage') })
    .where('session_id', '=', arg('session_id'))
    .where('run_id', '=', arg('run_id')),
);

export type RunOpening = NonNullable<Commit['openRun']>;

export async function readRun(db: Db, sessionId: string, runId: string): Promise<RunRow | undefined> {
  const row = await selectRun(db, sessionId, runId);
  return row === undefined ? undefined : toRunRow(row);
}

export async function readEndedRuns(db: Db, keys: RunKey[]): Promise<RunRow[]> {
  const rows: RunsRow[] = [];
  for (const chunk of chunksOf(keys, 100)) {
    const pairs = chunk.flatMap(({ sessionId, runId }) => [sessionId, runId]);
    rows.push(...(await selectEnded(db, pairs, {})));
  }
  return rows.map(toRunRow);
}

/** Runs of a session, oldest first. */
export async function listRuns(db: Db, sessionId: string): Promise<RunRow[]> {
  const rows = await db
    .selectFrom('runs')
    .selectAll()
    .where('session_id', '=', sessionId)
    .orderBy('first_offset')
    .orderBy('started_at')
    .execute();
  return rows.map(toRunRow);
}

/** The run that has this id already, reserved with another token. */
export async function findDuplicate(db: Db, sessionId: string, opening: RunOpening): Promise<RunRow | undefined> {
  const row = await selectRun(db, sessionId, opening.runId);
  return row === undefined || row.token === opening.token ? undefined : toRunRow(row);
}

/** Reserves the run's id, once; its first record will have the session's next offset. */
export async function openRun(db: Db, session: SessionsRow, opening: RunOpening): Promise<void> {
  const inserted = await db
    .insertInto('runs')
    .values({
      session_id: session.session_id,
      run_id: opening.runId,
      status: 'open',
      error: null,
      usage: JSON.stringify(noUsage),
      turns: 0,
      token: opening.token,
      started_at: Date.now(),
      ended_at: null,
      interrupted_by: null,
      first_offset: session.length,
      last_offset: null,
      last_assistant_id: null,
    })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  if (inserted.numInsertedOrUpdatedRows === 1n) session.runs += 1;
}

/** Ends a run; one that has ended keeps how it did. */
export async function closeRun(db: Db, session: SessionsRow, end: NonNullable<Commit['closeRun']>): Promise<void> {
  await db
    .updateTable('runs')
    .set({
      status: end.status,
      error: end.error === undefined ? null : JSON.stringify(end.error),
      ended_at: Date.now(),
      last_offset: Math.max(session.length - 1, 0),
    })
    .where('session_id', '=', session.session_id)
    .where('run_id', '=', end.runId)
    .where('status', '=', 'open')
    .execute();
}

export async function interruptRun(db: Db, session: SessionsRow, runId: string): Promise<void> {
  await closeRun(db, session, { runId, status: 'interrupted' });
  await db
    .updateTable('runs')
    .set({ interrupted_by: session.owner_run })
    .where('session_id', '=', session.session_id)
    .where('run_id', '=', runId)
    .execute();
}

/** Adds to the totals of the session and, when it is one of its runs, of the run. */
export async function addRunUsage(
  db: Db,
  session: SessionsRow,
  runId: string | undefined,
  usage: UsageTotals,
): Promise<void> {
  session.usage = JSON.stringify(addTotals(JSON.parse(session.usage) as UsageTotals, usage));
  if (runId === undefined) return;
  const row = await selectRun(db, session.session_id, runId);
  if (row === undefined) return;
  const total = addTotals(JSON.parse(row.usage) as UsageTotals, usage);
  await updateUsage(db, { session_id: session.session_id, run_id: runId, usage: JSON.stringify(total) });
}

async function selectRun(db: Db, sessionId: string, runId: string): Promise<RunsRow | undefined> {
  const [row] = await selectByKey(db, { session_id: sessionId, run_id: runId });
  return row;
}

function toRunRow(row: RunsRow): RunRow {
  return {
    sessionId: row.session_id,
    runId: row.run_id,
    status: row.status as RunRow['status'],
    ...(row.error === null ? {} : { error: JSON.parse(row.error) as ErrorInfo }),
    usage: JSON.parse(row.usage) as UsageTotals,
    turns: row.turns,
    startedAt: row.started_at,
    ...(row.ended_at === null ? {} : { endedAt: row.ended_at }),
    firstOffset: row.first_offset,
    ...(row.last_offset === null ? {} : { lastOffset: row.last_offset }),
    ...(row.last_assistant_id === null ? {} : { lastAssistantId: row.last_assistant_id }),
  };
}

import type { Db } from '../schema.ts';
import type { ControlRecord } from '../types.ts';
import { chunksOf } from './chunks.ts';

/** Asks an open run to stop. Nothing happens when it has ended, is unknown, or was asked before. */
export async function requestAbort(db: Db, sessionId: string, runId: string): Promise<void> {
  const open = await db
    .selectFrom('runs')
    .select('run_id')
    .where('session_id', '=', sessionId)
    .where('run_id', '=', runId)
    .where('status', '=', 'open')
    .executeTakeFirst();
  if (open === undefined) return;
  await db
    .insertInto('controls')
    .values({ session_id: sessionId, run_id: runId, kind: 'abort', at: Date.now() })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Control records of runs that are still open. */
export async function readControls(db: Db, sessionIds: string[]): Promise<ControlRecord[]> {
  const controls: ControlRecord[] = [];
  for (const chunk of chunksOf(sessionIds, 1000)) {
    const rows = await db
      .selectFrom('controls')
      .innerJoin('runs', (join) =>
        join
          .onRef('runs.session_id', '=', 'controls.session_id')
          .onRef('runs.run_id', '=', 'controls.run_id')
          .on('runs.status', '=', 'open'),
      )
      .select(['controls.session_id', 'controls.run_id', 'controls.at'])
      .where('controls.session_id', 'in', chunk)
      .where('controls.kind', '=', 'abort')
      .orderBy('controls.at')
      .execute();
    for (const row of rows) controls.push({ sessionId: row.session_id, runId: row.run_id, kind: 'abort', at: row.at });
  }
  return controls;
}

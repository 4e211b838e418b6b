import { EverturnError } from '../../common/errors.ts';
import type { Db, SessionsRow } from '../schema.ts';
import { statement } from './statement.ts';

const lock = statement<Pick<SessionsRow, 'session_id'>, SessionsRow>((db, arg) =>
  db
    .updateTable('sessions')
    .set((eb) => ({ epoch: eb.ref('epoch') }))
    .where('session_id', '=', arg('session_id'))
    .returningAll(),
);

const save = statement<SessionsRow, unknown>((db, arg) =>
  db
    .updateTable('sessions')
    .set({
      model: arg('model'),
      thinking_level: arg('thinking_level'),
      active_tools: arg('active_tools'),
      epoch: arg('epoch'),
      owner_run: arg('owner_run'),
      leaf: arg('leaf'),
      length: arg('length'),
      head_hash: arg('head_hash'),
      usage: arg('usage'),
      runs: arg('runs'),
      updated_at: arg('updated_at'),
    })
    .where('session_id', '=', arg('session_id')),
);

/**
 * Reads the session's row and holds its lock until the transaction ends, on every database: an update that changes
 * nothing takes the row lock on PostgreSQL, and on SQLite the whole transaction is the only writer anyway.
 */
export async function lockSession(db: Db, sessionId: string): Promise<SessionsRow> {
  const [row] = await lock(db, { session_id: sessionId });
  if (row === undefined) {
    throw new EverturnError(
      'not_found',
      `There is no session ${sessionId} in the store. Open it with openSession first.`,
    );
  }
  return row;
}

/** Stores what the operation changed in the row that it locked. */
export async function saveSession(db: Db, session: SessionsRow): Promise<void> {
  await save(db, { ...session, updated_at: Date.now() });
}

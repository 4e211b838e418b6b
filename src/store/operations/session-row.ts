import { EverturnError } from '../../common/errors.ts';
import type { Db, SessionsRow } from '../schema.ts';

/**
 * Reads the session's row and holds its lock until the transaction ends, on every database: an update that changes
 * nothing takes the row lock on PostgreSQL, and on SQLite the whole transaction is the only writer anyway.
 */
export async function lockSession(db: Db, sessionId: string): Promise<SessionsRow> {
  const row = await db
    .updateTable('sessions')
    .set((eb) => ({ epoch: eb.ref('epoch') }))
    .where('session_id', '=', sessionId)
    .returningAll()
    .executeTakeFirst();
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
  const { session_id: sessionId, agent: _agent, created_at: _createdAt, ...rest } = session;
  await db
    .updateTable('sessions')
    .set({ ...rest, updated_at: Date.now() })
    .where('session_id', '=', sessionId)
    .execute();
}

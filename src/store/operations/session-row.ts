import { type Compilable, SqliteAdapter } from 'kysely';
import { EverturnError } from '../../common/errors.ts';
import type { Db, SessionsRow } from '../schema.ts';
import { statement } from './statement.ts';

const lock = statement<Pick<SessionsRow, 'session_id'>, SessionsRow>((db, arg) => {
  const row = db.selectFrom('sessions').selectAll().where('session_id', '=', arg('session_id'));
  return db.getExecutor().adapter instanceof SqliteAdapter ? row : row.forUpdate();
});

const save = statement<SessionsRow, unknown>((db, arg) => update(db, changesOf(arg), arg));

const saveUsed = statement<SessionsRow, unknown>((db, arg) =>
  update(db, { ...changesOf(arg), updated_at: arg('updated_at') }, arg),
);

type Arg = <Name extends keyof SessionsRow>(name: Name) => SessionsRow[Name];

function changesOf(arg: Arg): Partial<SessionsRow> {
  return {
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
  };
}

function update(db: Db, changes: Partial<SessionsRow>, arg: Arg): Compilable<unknown> {
  return db.updateTable('sessions').set(changes).where('session_id', '=', arg('session_id'));
}

/** Milliseconds after which a use of the session is noted again: its place in the index of last uses costs two pages. */
const usedAgainMs = 1_000;

/** Reads the session's row and holds its lock until the transaction ends. On SQLite the transaction is the only writer anyway. */
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
  const now = Date.now();
  if (Math.abs(now - session.updated_at) < usedAgainMs) await save(db, session);
  else await saveUsed(db, { ...session, updated_at: now });
}

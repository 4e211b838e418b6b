import type { Selectable } from 'kysely';
import type { Db, RequestsTable } from '../schema.ts';
import type { RequestRecord } from '../types.ts';
import { insertStatement, statement } from './statement.ts';

type MessageRef = RequestRecord['messages'][number];
type RequestsRow = Selectable<RequestsTable>;
type LastRow = Omit<RequestsRow, 'session_id'>;

const insertRequests = insertStatement<RequestsRow>(
  ['session_id', 'seq', 'run_id', 'turn', 'kept', 'appended', 'frame'],
  (db, rows) =>
    db
      .insertInto('requests')
      .values(rows)
      .onConflict((conflict) =>
        conflict.columns(['session_id', 'seq']).doUpdateSet((eb) => ({
          kept: eb.ref('excluded.kept'),
          appended: eb.ref('excluded.appended'),
          frame: eb.ref('excluded.frame'),
        })),
      ),
);

const selectNewest = statement<Pick<RequestsRow, 'session_id'>, LastRow>((db, arg) =>
  db
    .selectFrom('requests')
    .select(['seq', 'run_id', 'turn', 'kept', 'appended', 'frame'])
    .where('session_id', '=', arg('session_id'))
    .orderBy('seq', 'desc')
    .limit(1),
);

const selectSeq = statement<Pick<RequestsRow, 'session_id' | 'run_id' | 'turn'>, Pick<RequestsRow, 'seq'>>((db, arg) =>
  db
    .selectFrom('requests')
    .select('seq')
    .where('session_id', '=', arg('session_id'))
    .where('run_id', '=', arg('run_id'))
    .where('turn', '=', arg('turn')),
);

/**
 * Keeps what the model was given, as a delta to the session's request before. Saving the same turn again replaces it as
 * long as it is the last one (a request that was made anew after an overflow); later it changes nothing.
 */
export async function saveRequest(db: Db, sessionId: string, request: RequestRecord): Promise<void> {
  const last = await selectLast(db, sessionId);
  const known = await findSeq(db, sessionId, request.runId, request.turn);
  if (known !== undefined && known !== last?.seq) return;
  const before =
    known === undefined && last !== undefined
      ? await messagesOf(db, sessionId, last)
      : await rebuild(db, sessionId, (known ?? 1) - 1);
  const seq = known ?? (last?.seq ?? 0) + 1;
  let kept = 0;
  while (kept < before.length && kept < request.messages.length && sameRef(before[kept], request.messages[kept])) {
    kept += 1;
  }
  const delta = { kept, appended: JSON.stringify(request.messages.slice(kept)), frame: request.frame };
  const { runId: run_id, turn } = request;
  await insertRequests(db, [{ session_id: sessionId, seq, run_id, turn, ...delta }]);
  remember(db, sessionId, { row: { seq, run_id, turn, ...delta }, messages: request.messages });
}

interface Remembered {
  row: LastRow;
  messages: MessageRef[];
}

/** Sessions whose last request a connection remembers. */
const rememberedSessions = 500;
const remembered = new WeakMap<Db, Map<string, Remembered>>();

/**
 * The list that the session's last row stands for. Without memory every turn would read all rows before it. A row that is
 * not the last one any more never changes, so the same last row stands for the same list, whoever wrote it.
 */
async function messagesOf(db: Db, sessionId: string, last: LastRow): Promise<MessageRef[]> {
  const known = remembered.get(db)?.get(sessionId);
  return known !== undefined && sameRow(known.row, last) ? known.messages : rebuild(db, sessionId, last.seq);
}

function remember(db: Db, sessionId: string, entry: Remembered): void {
  const sessions = remembered.get(db) ?? new Map<string, Remembered>();
  remembered.set(db, sessions);
  sessions.delete(sessionId);
  sessions.set(sessionId, entry);
  const oldest = sessions.keys().next().value;
  if (oldest !== undefined && sessions.size > rememberedSessions) sessions.delete(oldest);
}

function sameRow(left: LastRow, right: LastRow): boolean {
  return (
    left.seq === right.seq &&
    left.run_id === right.run_id &&
    left.turn === right.turn &&
    left.kept === right.kept &&
    left.appended === right.appended &&
    left.frame === right.frame
  );
}

async function selectLast(db: Db, sessionId: string): Promise<LastRow | undefined> {
  const [row] = await selectNewest(db, { session_id: sessionId });
  return row;
}

export async function readRequest(
  db: Db,
  sessionId: string,
  runId: string,
  turn: number,
): Promise<RequestRecord | undefined> {
  const row = await db
    .selectFrom('requests')
    .select(['seq', 'frame'])
    .where('session_id', '=', sessionId)
    .where('run_id', '=', runId)
    .where('turn', '=', turn)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return { runId, turn, messages: await rebuild(db, sessionId, row.seq), frame: row.frame };
}

async function findSeq(db: Db, sessionId: string, runId: string, turn: number): Promise<number | undefined> {
  const [row] = await selectSeq(db, { session_id: sessionId, run_id: runId, turn });
  return row?.seq;
}

/** Goes back through the deltas until nothing of the list is missing; a compaction ends the walk, as it keeps nothing. */
async function rebuild(db: Db, sessionId: string, seq: number): Promise<MessageRef[]> {
  const parts: MessageRef[][] = [];
  const page = 32;
  let missing = Number.POSITIVE_INFINITY;
  for (let from = seq; from > 0 && missing > 0; from -= page) {
    const rows = await db
      .selectFrom('requests')
      .select(['kept', 'appended'])
      .where('session_id', '=', sessionId)
      .where('seq', '<=', from)
      .orderBy('seq', 'desc')
      .limit(page)
      .execute();
    for (const row of rows) {
      if (missing <= row.kept) continue;
      const appended = JSON.parse(row.appended) as MessageRef[];
      parts.push(appended.slice(0, missing - row.kept));
      missing = row.kept;
    }
  }
  return parts.reverse().flat();
}

function sameRef(left: MessageRef | undefined, right: MessageRef | undefined): boolean {
  if (left === undefined || right === undefined) return false;
  if ('entry' in left) return 'entry' in right && left.entry === right.entry;
  return 'blob' in right && left.blob === right.blob;
}

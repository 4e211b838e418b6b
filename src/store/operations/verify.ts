import { EverturnError } from '../../common/errors.ts';
import type { LogRecord } from '../../common/events.ts';
import type { Db, RecordsRow } from '../schema.ts';
import { firstHash, recordHash } from './log.ts';

/** How far a verification has come: everything before `offset` is as it was written. */
export interface VerifyProgress {
  offset: number;
  hash: string;
  leaf: string | null;
  entries: number;
}

type VerifyStep =
  | { state: 'next'; progress: VerifyProgress }
  | { state: 'ok'; length: number }
  | { state: 'wrong'; offset: number; reason: string };

const pageSize = 500;

/**
 * Checks one page of the hash chain from its stored bytes, and at its end the length, the head and the leaf that the
 * session's row has. Pages keep the reader free for others; records that are appended meanwhile are checked too.
 */
export async function verifyPage(db: Db, sessionId: string, from?: VerifyProgress): Promise<VerifyStep> {
  const session = await db.selectFrom('sessions').selectAll().where('session_id', '=', sessionId).executeTakeFirst();
  if (session === undefined) throw new EverturnError('not_found', `There is no session ${sessionId} in the store.`);
  const progress = from ?? { offset: 0, hash: firstHash(sessionId), leaf: null, entries: 0 };
  const rows = await db
    .selectFrom('records')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('offset', '>=', progress.offset)
    .orderBy('offset')
    .limit(pageSize)
    .execute();
  const keys = rows.map((row) => row.key);
  const nodes = await readNodes(db, sessionId, keys);
  for (const row of rows) {
    const reason = row.offset >= session.length ? 'there is a record behind the end' : advance(progress, row, nodes);
    if (reason !== undefined) return { state: 'wrong', offset: Math.min(progress.offset, row.offset), reason };
  }
  if (rows.length === pageSize) return { state: 'next', progress };
  const wrong = (reason: string): VerifyStep => ({ state: 'wrong', offset: progress.offset, reason });
  if (progress.offset !== session.length) {
    return wrong(`records are missing: the session has ${session.length}, the log ends after ${progress.offset}`);
  }
  if (progress.hash !== session.head_hash) return wrong("the session's head hash is not that of its last record");
  if (progress.leaf !== session.leaf) return wrong("the session's leaf is not the one that its entries give");
  if (progress.entries !== (await countNodes(db, sessionId)))
    return wrong('the index of entries is not that of the log');
  return { state: 'ok', length: session.length };
}

type Nodes = Map<string, { parent_id: string | null; offset: number }>;

/** Takes one record into the chain, or says what is wrong with it. */
function advance(progress: VerifyProgress, row: RecordsRow, nodes: Nodes): string | undefined {
  if (row.offset !== progress.offset) return 'the record is missing';
  if (recordHash(progress.hash, row) !== row.hash) return 'the record is not the one that was written';
  const body = JSON.parse(row.body) as LogRecord['body'];
  if (body.kind === 'entry') {
    const node = nodes.get(row.key);
    if (node?.offset !== row.offset || node.parent_id !== body.entry.parentId) {
      return 'the index of entries does not agree with the record';
    }
    progress.entries += 1;
    progress.leaf = body.entry.type === 'leaf' ? body.entry.targetId : body.entry.id;
  }
  progress.offset += 1;
  progress.hash = row.hash;
  return undefined;
}

async function readNodes(db: Db, sessionId: string, keys: string[]): Promise<Nodes> {
  const rows = await db
    .selectFrom('entries')
    .select(['entry_id', 'parent_id', 'offset'])
    .where('session_id', '=', sessionId)
    .where('entry_id', 'in', keys)
    .execute();
  return new Map(rows.map((row) => [row.entry_id, row]));
}

async function countNodes(db: Db, sessionId: string): Promise<number> {
  const row = await db
    .selectFrom('entries')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('session_id', '=', sessionId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

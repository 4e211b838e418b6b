import { hash } from 'node:crypto';
import type { NewEntry, SessionTreeEntry } from '../../common/entries.ts';
import { EverturnError } from '../../common/errors.ts';
import { keyOf, type LogRecord, type NewRecord } from '../../common/events.ts';
import { canonicalJson } from '../../common/json.ts';
import type { Db, EntriesTable, RecordsRow, RunsRow, SessionsRow } from '../schema.ts';
import type { RecordPlace } from '../types.ts';
import { chunksOf } from './chunks.ts';
import { insertStatement, listStatement, statement } from './statement.ts';

const insertRecords = insertStatement<RecordsRow>(
  ['session_id', 'offset', 'at', 'run_id', 'turn', 'key', 'body', 'hash'],
  (db, rows) => db.insertInto('records').values(rows),
);

const insertEntries = insertStatement<EntriesTable>(['session_id', 'entry_id', 'parent_id', 'offset'], (db, rows) =>
  db.insertInto('entries').values(rows),
);

const selectKeys = listStatement<string, Pick<RecordsRow, 'session_id'>, Pick<RecordsRow, 'key'>>((db, keys, arg) =>
  db.selectFrom('records').select('key').where('session_id', '=', arg('session_id')).where('key', 'in', keys),
);

const countInRun = statement<Pick<RunsRow, 'session_id' | 'run_id' | 'turns' | 'last_assistant_id'>, unknown>(
  (db, arg) =>
    db
      .updateTable('runs')
      .set((eb) => ({
        turns: eb('turns', '+', arg('turns')),
        last_assistant_id: eb.fn.coalesce(eb.val(arg('last_assistant_id')), 'last_assistant_id'),
      }))
      .where('session_id', '=', arg('session_id'))
      .where('run_id', '=', arg('run_id')),
);

/** What a record belongs to. */
export interface Place {
  runId: string | null;
  turn: number | null;
}

/** The hash before a session's first record. */
export function firstHash(sessionId: string): string {
  return hash('sha256', sessionId, 'hex');
}

/**
 * Hash of a record: SHA-256 of the hash before it and of the record's canonical JSON, with the body spliced in as it is
 * stored. So not one byte of the body can change unseen, not even one that JSON does not care about.
 */
export function recordHash(previous: string, record: Omit<RecordsRow, 'session_id' | 'hash'>): string {
  const { at, body, key, offset, run_id: runId, turn } = record;
  const text = `{"at":${JSON.stringify(at)},"body":${body},"key":${JSON.stringify(key)},"offset":${JSON.stringify(offset)},"runId":${JSON.stringify(runId)},"turn":${JSON.stringify(turn)}}`;
  return hash('sha256', previous + text, 'hex');
}

/**
 * Appends records under the session's lock and moves the leaf. A key that the session has already, or that comes twice,
 * is skipped: what is stored wins. `session` is changed in place, and is stored by `saveSession`.
 */
export async function appendRecords(db: Db, session: SessionsRow, place: Place, records: NewRecord[]): Promise<void> {
  if (records.length === 0) return;
  const known = await readKnownKeys(db, session.session_id, records.map(keyOf));
  const fresh = new Set<string>();
  const rows: RecordsRow[] = [];
  const entryRows: EntriesTable[] = [];
  const counted: CountedRecords = { turns: 0, lastAssistantId: undefined };
  const at = Date.now();
  for (const record of records) {
    const key = keyOf(record);
    if (known.has(key) || fresh.has(key)) continue;
    const offset = session.length;
    const parentId = session.leaf;
    if (record.kind === 'entry') {
      session.leaf = await leafAfter(db, session.session_id, record.entry, fresh);
      entryRows.push({ session_id: session.session_id, entry_id: key, parent_id: parentId, offset });
    }
    fresh.add(key);
    count(record, counted);
    const row = {
      offset,
      at,
      run_id: place.runId,
      turn: record.turn ?? place.turn,
      key,
      body: bodyText(record, parentId),
    };
    session.head_hash = recordHash(session.head_hash, row);
    session.length += 1;
    rows.push({ session_id: session.session_id, ...row, hash: session.head_hash });
  }
  for (const chunk of chunksOf(rows, 100)) await insertRecords(db, chunk);
  for (const chunk of chunksOf(entryRows, 100)) await insertEntries(db, chunk);
  await addToRun(db, session.session_id, place.runId, counted);
}

export async function readLog(db: Db, sessionId: string, fromOffset: number, limit: number): Promise<LogRecord[]> {
  const rows = await db
    .selectFrom('records')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('offset', '>=', fromOffset)
    .orderBy('offset')
    .limit(limit)
    .execute();
  return rows.map(toLogRecord);
}

function toLogRecord(row: RecordsRow): LogRecord {
  return {
    offset: row.offset,
    at: row.at,
    runId: row.run_id,
    turn: row.turn,
    key: row.key,
    body: JSON.parse(row.body) as LogRecord['body'],
    hash: row.hash,
  };
}

export async function findRecords(db: Db, sessionId: string, keys: string[]): Promise<(RecordPlace | null)[]> {
  const places = new Map<string, RecordPlace>();
  for (const chunk of chunksOf(keys, 500)) {
    const rows = await db
      .selectFrom('records')
      .select(['key', 'offset', 'run_id'])
      .where('session_id', '=', sessionId)
      .where('key', 'in', chunk)
      .execute();
    for (const { key, offset, run_id: runId } of rows) places.set(key, { offset, runId });
  }
  return keys.map((key) => places.get(key) ?? null);
}

/** Reads a run's records, oldest first, in pages. */
export async function* recordsOfRun(
  db: Db,
  sessionId: string,
  runId: string,
  firstOffset: number,
): AsyncGenerator<LogRecord> {
  const size = 500;
  for (let from = firstOffset; ; ) {
    const page = await readLog(db, sessionId, from, size);
    for (const record of page) if (record.runId === runId) yield record;
    if (page.length < size) return;
    from += size;
  }
}

function bodyText(record: NewRecord, parentId: string | null): string {
  if (record.kind === 'event') return canonicalJson({ kind: 'event', event: record.event });
  return canonicalJson({ kind: 'entry', entry: { ...record.entry, parentId } satisfies SessionTreeEntry });
}

/** A `leaf` entry moves the leaf to its target; any other entry becomes the leaf itself. */
async function leafAfter(db: Db, sessionId: string, entry: NewEntry, fresh: Set<string>): Promise<string | null> {
  if (entry.type !== 'leaf') return entry.id;
  const target = entry.targetId;
  if (target === null || fresh.has(target)) return target;
  const found = await db
    .selectFrom('entries')
    .select('entry_id')
    .where('session_id', '=', sessionId)
    .where('entry_id', '=', target)
    .executeTakeFirst();
  if (found === undefined) {
    throw new EverturnError('not_found', `The leaf cannot move to ${target}: session ${sessionId} has no such entry.`);
  }
  return target;
}

async function readKnownKeys(db: Db, sessionId: string, keys: string[]): Promise<Set<string>> {
  const known = new Set<string>();
  for (const chunk of chunksOf(keys, 500)) {
    for (const row of await selectKeys(db, chunk, { session_id: sessionId })) known.add(row.key);
  }
  return known;
}

interface CountedRecords {
  turns: number;
  lastAssistantId: string | undefined;
}

function count(record: NewRecord, counted: CountedRecords): void {
  if (record.kind === 'event') {
    if (record.event.type === 'turn_start') counted.turns += 1;
  } else if (record.entry.type === 'message' && record.entry.message.role === 'assistant') {
    counted.lastAssistantId = record.entry.id;
  }
}

async function addToRun(db: Db, sessionId: string, runId: string | null, counted: CountedRecords): Promise<void> {
  const { turns, lastAssistantId } = counted;
  if (runId === null || (turns === 0 && lastAssistantId === undefined)) return;
  await countInRun(db, { session_id: sessionId, run_id: runId, turns, last_assistant_id: lastAssistantId ?? null });
}

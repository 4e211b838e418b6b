import type { SessionTreeEntry } from '../../common/entries.ts';
import { EverturnError } from '../../common/errors.ts';
import type { Db } from '../schema.ts';
import { chunksOf } from './chunks.ts';

/**
 * The branch that ends at `leaf`, oldest first, walked on the index of entries. With `afterEntryId` on it, only what comes
 * after that entry, and `complete` is false.
 */
export async function readPath(
  db: Db,
  sessionId: string,
  leaf: string,
  afterEntryId?: string,
): Promise<{ entries: SessionTreeEntry[]; complete: boolean }> {
  const rows = await db
    .withRecursive('path', (cte) =>
      cte
        .selectFrom('entries')
        .select(['entry_id', 'parent_id', 'offset'])
        .where('session_id', '=', sessionId)
        .where('entry_id', '=', leaf)
        .unionAll(
          cte
            .selectFrom('path')
            .innerJoin('entries', 'entries.entry_id', 'path.parent_id')
            .select(['entries.entry_id', 'entries.parent_id', 'entries.offset'])
            .where('entries.session_id', '=', sessionId)
            .where('path.entry_id', '!=', afterEntryId ?? ''),
        ),
    )
    .selectFrom('path')
    // A cross join keeps the order in SQLite, which without statistics would read the session's whole log first.
    .crossJoin('records')
    .whereRef('records.offset', '=', 'path.offset')
    .where('records.session_id', '=', sessionId)
    .select(['path.entry_id', 'path.parent_id', 'records.body'])
    .orderBy('path.offset')
    .execute();
  const first = rows[0];
  if (first === undefined) {
    throw new EverturnError('not_found', `Session ${sessionId} has no entry ${leaf}.`);
  }
  const complete = first.entry_id !== afterEntryId;
  if (complete && first.parent_id !== null) {
    throw new EverturnError(
      'store',
      `The path of ${leaf} breaks at ${first.entry_id}: its parent is missing. Run verify.`,
    );
  }
  return { entries: (complete ? rows : rows.slice(1)).map((row) => entryOf(row.body)), complete };
}

/** Entries by id, in the order asked for. Ids that the session does not have are left out. */
export async function readEntries(db: Db, sessionId: string, ids: string[]): Promise<SessionTreeEntry[]> {
  const found = new Map<string, SessionTreeEntry>();
  for (const chunk of chunksOf(ids, 500)) {
    const rows = await db
      .selectFrom('records')
      .innerJoin('entries', (join) =>
        join
          .onRef('entries.session_id', '=', 'records.session_id')
          .onRef('entries.offset', '=', 'records.offset')
          .onRef('entries.entry_id', '=', 'records.key'),
      )
      .select(['records.key', 'records.body'])
      .where('records.session_id', '=', sessionId)
      .where('records.key', 'in', chunk)
      .execute();
    for (const row of rows) found.set(row.key, entryOf(row.body));
  }
  return ids.flatMap((id) => found.get(id) ?? []);
}

function entryOf(body: string): SessionTreeEntry {
  return (JSON.parse(body) as { entry: SessionTreeEntry }).entry;
}

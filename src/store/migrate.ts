import { type Kysely, SqliteAdapter, sql } from 'kysely';
import { EverturnError } from '../common/errors.ts';
import { type Db, type LiveDb, schemaVersion } from './schema.ts';

type ColumnType = 'text' | 'integer' | 'bigint' | 'blob';

interface TableShape {
  /** Column types; a `?` at the end allows null. */
  columns: Record<string, ColumnType | `${ColumnType}?`>;
  primary: string[];
  unique?: string[];
  index?: string[];
  /**
   * SQLite keeps the rows in the primary key's own tree: one page less to write for each change. For tables whose rows
   * are small: a large one takes pages of its own there.
   */
  clustered?: true;
}

const logTables: Record<string, TableShape> = {
  sessions: {
    columns: {
      session_id: 'text',
      agent: 'text',
      model: 'text',
      thinking_level: 'text',
      active_tools: 'text?',
      epoch: 'integer',
      owner_run: 'text',
      leaf: 'text?',
      length: 'integer',
      head_hash: 'text',
      usage: 'text',
      runs: 'integer',
      created_at: 'bigint',
      updated_at: 'bigint',
    },
    primary: ['session_id'],
    index: ['updated_at'],
  },
  records: {
    columns: {
      session_id: 'text',
      offset: 'integer',
      at: 'bigint',
      run_id: 'text?',
      turn: 'integer?',
      key: 'text',
      hash: 'text',
      body: 'text',
    },
    primary: ['session_id', 'offset'],
    unique: ['session_id', 'key'],
  },
  entries: {
    columns: { session_id: 'text', entry_id: 'text', parent_id: 'text?', offset: 'integer' },
    primary: ['session_id', 'entry_id'],
    clustered: true,
  },
  runs: {
    columns: {
      session_id: 'text',
      run_id: 'text',
      status: 'text',
      error: 'text?',
      usage: 'text',
      turns: 'integer',
      token: 'text',
      started_at: 'bigint',
      ended_at: 'bigint?',
      interrupted_by: 'text?',
      first_offset: 'integer',
      last_offset: 'integer?',
      last_assistant_id: 'text?',
    },
    primary: ['session_id', 'run_id'],
    index: ['session_id', 'status'],
  },
  effects: {
    columns: {
      session_id: 'text',
      effect: 'text',
      kind: 'text',
      run_id: 'text?',
      workflow_run: 'text',
      attempt: 'integer',
      attempts: 'integer',
      started_at: 'bigint',
      finished_at: 'bigint?',
      result: 'text?',
    },
    primary: ['session_id', 'effect'],
    clustered: true,
  },
  steps: {
    columns: { session_id: 'text', effect: 'text', name: 'text', outcome: 'text' },
    primary: ['session_id', 'effect', 'name'],
  },
  calls: {
    columns: {
      session_id: 'text',
      entry_id: 'text',
      call_index: 'integer',
      run_id: 'text?',
      turn: 'integer?',
      tool_call_id: 'text',
      tool_name: 'text',
      result_entry_id: 'text',
      args: 'text',
      entries: 'integer',
      replay: 'text?',
      args_digest: 'text?',
      claimed_at: 'bigint?',
      progress: 'text?',
      settled: 'text?',
      outcome: 'text?',
      appended: 'integer',
      late_result: 'text?',
    },
    primary: ['session_id', 'entry_id', 'call_index'],
    clustered: true,
    index: ['session_id', 'run_id'],
  },
  requests: {
    columns: {
      session_id: 'text',
      seq: 'integer',
      run_id: 'text',
      turn: 'integer',
      kept: 'integer',
      appended: 'text',
      frame: 'text',
    },
    primary: ['session_id', 'seq'],
    clustered: true,
    unique: ['session_id', 'run_id', 'turn'],
  },
  controls: {
    columns: { session_id: 'text', run_id: 'text', kind: 'text', at: 'bigint' },
    primary: ['session_id', 'run_id', 'kind'],
  },
  blobs: { columns: { digest: 'text', data: 'blob', at: 'bigint' }, primary: ['digest'] },
};

/** Creates the log's tables where there are none. Runs in one write transaction; tables that are there stay. */
export async function migrateLog(db: Db): Promise<void> {
  if (await isCurrent(db)) return;
  for (const [name, shape] of Object.entries(logTables)) await createTable(db, name, shape);
  await writeVersion(db);
}

/** Creates the table of live deltas where there is none. Numbers of deleted deltas are never given out again. */
export async function migrateLive(db: LiveDb): Promise<void> {
  if (await isCurrent(db)) return;
  await db.schema
    .createTable('deltas')
    .addColumn('seq', 'integer', (column) => column.primaryKey().autoIncrement())
    .addColumn('session_id', 'text', (column) => column.notNull())
    .addColumn('run_id', 'text', (column) => column.notNull())
    .addColumn('entry_id', 'text', (column) => column.notNull())
    .addColumn('attempt', 'integer', (column) => column.notNull())
    .addColumn('n', 'integer', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('delta', 'text', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('deltas_session').on('deltas').columns(['session_id', 'seq']).execute();
  await writeVersion(db);
}

async function createTable(db: Db, name: string, shape: TableShape): Promise<void> {
  let table = db.schema.createTable(name).addPrimaryKeyConstraint(`${name}_pk`, shape.primary as never);
  for (const [column, type] of Object.entries(shape.columns)) {
    const plain = type.replace('?', '') as ColumnType;
    table = table.addColumn(column, plain === 'blob' ? sql`blob` : plain, (built) =>
      type.endsWith('?') ? built : built.notNull(),
    );
  }
  if (shape.unique !== undefined) table = table.addUniqueConstraint(`${name}_unique`, shape.unique as never);
  if (shape.clustered && db.getExecutor().adapter instanceof SqliteAdapter) table = table.modifyEnd(sql`without rowid`);
  await table.execute();
  if (shape.index === undefined) return;
  await db.schema.createIndex(`${name}_index`).on(name).columns(shape.index).execute();
}

interface Versioned {
  meta: { key: string; value: string };
}

async function isCurrent(db: Db | LiveDb): Promise<boolean> {
  const meta = db as unknown as Kysely<Versioned>;
  await meta.schema
    .createTable('meta')
    .ifNotExists()
    .addColumn('key', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute();
  const row = await meta.selectFrom('meta').select('value').where('key', '=', 'schema_version').executeTakeFirst();
  if (row === undefined) return false;
  if (Number(row.value) === schemaVersion) return true;
  throw new EverturnError(
    'store',
    `The store has schema version ${row.value}, this Everturn knows ${schemaVersion}. ` +
      'Use the Everturn that wrote it, or a newer one.',
    { details: { found: row.value, known: schemaVersion } },
  );
}

async function writeVersion(db: Db | LiveDb): Promise<void> {
  const meta = db as unknown as Kysely<Versioned>;
  await meta
    .insertInto('meta')
    .values({ key: 'schema_version', value: String(schemaVersion) })
    .execute();
}

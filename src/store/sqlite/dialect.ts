import type { DatabaseSync, StatementSync } from 'node:sqlite';
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';

type Parameter = null | number | bigint | string | NodeJS.ArrayBufferView;

interface CachedStatement {
  statement: StatementSync;
  returnsRows: boolean;
}

/** Enough for every statement of the operations, with lists of some lengths; the least used one goes first. */
const cachedStatements = 400;

/**
 * Kysely on `node:sqlite`, in the thread that owns the connection. Statements run at once and their promises are resolved
 * when they are returned, so a whole operation runs without letting anything else in. Transactions are not its business:
 * the thread puts many operations into one.
 */
export function sqliteDialect(connection: SqliteConnection): Dialect {
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connection,
    releaseConnection: async () => undefined,
    beginTransaction: refuseTransaction,
    commitTransaction: refuseTransaction,
    rollbackTransaction: refuseTransaction,
    destroy: async () => undefined,
  };
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => driver,
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
}

export class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, CachedStatement>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  async executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    return this.run<Row>(query.sql, query.parameters);
  }

  run<Row>(sql: string, parameters: readonly unknown[]): QueryResult<Row> {
    const { statement, returnsRows } = this.#prepare(sql);
    const values = parameters as readonly Parameter[];
    if (returnsRows) return { rows: statement.all(...values) as Row[] };
    const { changes } = statement.run(...values);
    return { rows: [], numAffectedRows: BigInt(changes) };
  }

  // biome-ignore lint/correctness/useYield: the operations read in pages, streams are not offered
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('Streaming is not supported: read in pages.');
  }

  #prepare(sql: string): CachedStatement {
    let cached = this.#statements.get(sql);
    if (cached === undefined) {
      const statement = this.#database.prepare(sql);
      cached = { statement, returnsRows: statement.columns().length > 0 };
      const oldest = this.#statements.keys().next().value;
      if (oldest !== undefined && this.#statements.size >= cachedStatements) this.#statements.delete(oldest);
    } else {
      this.#statements.delete(sql);
    }
    this.#statements.set(sql, cached);
    return cached;
  }
}

async function refuseTransaction(): Promise<void> {
  throw new Error('An operation runs in the transaction that it is given and begins none.');
}

import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { Kysely } from 'kysely';
import { runAtOnce } from '../operations/statement.ts';
import { SqliteConnection, sqliteDialect } from './dialect.ts';
import { isBusy, toStoreError } from './errors.ts';

export interface ConnectionOptions {
  file: string;
  /** `FULL`: a commit is on the disk when it returns, unless `begin` says otherwise. `NORMAL`: it survives the process, the power maybe not. */
  synchronous: 'FULL' | 'NORMAL';
  /** How long to try for the lock that another process holds. */
  busyTimeoutMs: number;
  /** Limit of the file's size in pages of 4 KiB. */
  maxPages?: number | undefined;
  /** Refuses every write. */
  readOnly?: boolean;
}

/** One SQLite connection with the Kysely that runs on it. */
export class Connection<Schema> {
  readonly file: string;
  readonly db: Kysely<Schema>;
  readonly #database: DatabaseSync;
  readonly #busyTimeoutMs: number;
  readonly #synchronous: ConnectionOptions['synchronous'];
  #current: ConnectionOptions['synchronous'];

  /** Opens the file, and makes it and its folder if they are not there. */
  static async open<Schema>(options: ConnectionOptions): Promise<Connection<Schema>> {
    let database: DatabaseSync | undefined;
    try {
      mkdirSync(dirname(options.file), { recursive: true });
      database = new DatabaseSync(options.file);
      const connection = new Connection<Schema>(database, options);
      await connection.#configure(options);
      return connection;
    } catch (error) {
      if (database?.isOpen === true) database.close();
      throw toStoreError(error, options.file);
    }
  }

  private constructor(database: DatabaseSync, options: ConnectionOptions) {
    this.file = options.file;
    this.#database = database;
    this.#busyTimeoutMs = options.busyTimeoutMs;
    this.#synchronous = options.synchronous;
    this.#current = options.synchronous;
    const connection = new SqliteConnection(database);
    this.db = new Kysely<Schema>({ dialect: sqliteDialect(connection) });
    runAtOnce(this.db, (sql, parameters) => connection.run(sql, parameters).rows);
  }

  /** False when SQLite gave up the transaction by itself, as it does when the disk is full. */
  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  exec(sql: string): void {
    this.#database.exec(sql);
  }

  /**
   * Takes the write lock, waiting for other processes in short steps that do not block the thread.
   * @param safeFrom what the transaction is to survive once it is committed: the power's end, or this process's
   */
  async begin(safeFrom: 'power' | 'process' = 'power'): Promise<void> {
    const synchronous = safeFrom === 'power' ? this.#synchronous : 'NORMAL';
    if (synchronous !== this.#current) this.#database.exec(`pragma synchronous = ${synchronous}`);
    this.#current = synchronous;
    await this.retryWhileBusy(() => this.#database.exec('begin immediate'));
  }

  /** Ends whatever transaction is open, if there is one. */
  rollback(): void {
    if (this.#database.isTransaction) this.#database.exec('rollback');
  }

  /** Runs what may fail with SQLITE_BUSY again until the busy timeout is over. */
  async retryWhileBusy<Result>(attempt: () => Result | Promise<Result>): Promise<Result> {
    const deadline = performance.now() + this.#busyTimeoutMs;
    for (let delay = 1; ; delay = Math.min(delay * 2, 16)) {
      try {
        return await attempt();
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
      }
      // Without chance in it, two processes that wait for each other would keep the same beat.
      await sleep(delay * (0.5 + Math.random()));
    }
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  async #configure(options: ConnectionOptions): Promise<void> {
    await this.retryWhileBusy(() => this.#database.exec('pragma journal_mode = wal'));
    this.#database.exec(`pragma synchronous = ${options.synchronous}`);
    this.#database.exec('pragma wal_autocheckpoint = 2000');
    if (options.maxPages !== undefined) this.#database.exec(`pragma max_page_count = ${Math.floor(options.maxPages)}`);
    if (options.readOnly === true) this.#database.exec('pragma query_only = 1');
  }
}

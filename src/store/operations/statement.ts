import type { Compilable, CompiledQuery } from 'kysely';
import type { Db, LiveDb } from '../schema.ts';

/** Stands for a value while a statement is built. */
class Slot {
  readonly name: PropertyKey;

  constructor(name: PropertyKey) {
    this.name = name;
  }
}

/** Runs a compiled statement now. */
export type RunNow = (sql: string, parameters: readonly unknown[]) => unknown[];

const synchronous = new WeakMap<object, RunNow>();

/** Lets the statements of a connection run at once, where the database can: without the promises of Kysely's drivers. */
export function runAtOnce(db: object, run: RunNow): void {
  synchronous.set(db, run);
}

/** Gives the rows of a statement that returns any. */
export type Statement<Args, Row, On extends object = Db> = (db: On, args: Args) => Promise<Row[]>;

type Arg<Args> = <Name extends keyof Args>(name: Name) => Args[Name];

/**
 * A statement of every turn, built and compiled once for a connection instead of each time. In `build`, `arg(name)` stands
 * wherever a value may stand; it is no value, so nothing may be decided by it.
 */
export function statement<Args extends object, Row = never, On extends Db | LiveDb = Db>(
  build: (db: On, arg: Arg<Args>) => Compilable<Row>,
): Statement<Args, Row, On> {
  const compiled = new WeakMap<On, CompiledQuery<Row>>();
  // Typed as the value that it stands for.
  const arg = ((name: keyof Args) => new Slot(name)) as unknown as Arg<Args>;
  return async (db, args) => {
    let query = compiled.get(db);
    if (query === undefined) {
      query = build(db, arg).compile();
      compiled.set(db, query);
    }
    const parameters = query.parameters.map((value) =>
      value instanceof Slot ? args[value.name as keyof Args] : value,
    );
    const atOnce = synchronous.get(db);
    if (atOnce !== undefined) return atOnce(query.sql, parameters) as Row[];
    return (await db.executeQuery<Row>({ ...query, parameters })).rows;
  };
}

/** A statement for lists, one for each length: `build` gets slots for the items, and what else it takes in `arg`. */
export function listStatement<Item, Args extends object, Row = never, On extends Db | LiveDb = Db>(
  build: (db: On, items: Item[], arg: Arg<Args>) => Compilable<Row>,
): (db: On, items: readonly Item[], args: Args) => Promise<Row[]> {
  const byLength = new Map<number, Statement<Record<PropertyKey, unknown>, Row, On>>();
  return (db, items, args) => {
    const { length } = items;
    let run = byLength.get(length);
    if (run === undefined) {
      run = statement((on, arg) => {
        const slots = Array.from({ length }, (_, index) => arg(index) as Item);
        return build(on, slots, arg as unknown as Arg<Args>);
      });
      byLength.set(length, run);
    }
    return run(db, { ...args, ...items } as Record<PropertyKey, unknown>);
  };
}

/** Inserts rows that all have these columns, in the order of the columns. */
export function insertStatement<Row extends object, On extends Db | LiveDb = Db>(
  columns: readonly (keyof Row & string)[],
  build: (db: On, rows: Row[]) => Compilable<unknown>,
): (db: On, rows: readonly Row[]) => Promise<void> {
  const insert = listStatement<unknown, object, unknown, On>((db, values) => {
    const rows = Array.from({ length: values.length / columns.length }, (_, row) =>
      Object.fromEntries(columns.map((column, index) => [column, values[row * columns.length + index]])),
    );
    return build(db, rows as Row[]);
  });
  return async (db, rows) => {
    await insert(
      db,
      rows.flatMap((row) => columns.map((column) => row[column])),
      {},
    );
  };
}

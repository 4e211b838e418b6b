import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from '@jest/globals';
import { type KyselyPlugin, SqliteQueryCompiler } from 'kysely';
import { readPath } from '../../src/store/operations/entries.ts';
import type { Tables } from '../../src/store/schema.ts';
import { Connection } from '../../src/store/sqlite/connection.ts';
import type { Store } from '../../src/store/types.ts';
import { entry, fence, moveLeaf, tempFolder, tempSession } from './helpers.ts';

/** a - b - c, and a - d beside it. */
async function forked(): Promise<Store> {
  const store = await tempSession();
  await store.commit(fence('one'), {
    records: [entry('a'), entry('b'), entry('c'), moveLeaf('jump', 'a'), entry('d')],
  });
  return store;
}

async function ids(store: Store, leaf: string, after?: string): Promise<unknown> {
  const { entries, complete } = await store.readPath('s', leaf, after);
  return [entries.map(({ id }) => id).join(''), complete];
}

describe('readPath', () => {
  test('the path of a leaf has its branch alone, oldest first', async () => {
    const store = await forked();
    expect(await ids(store, 'c')).toEqual(['abc', true]);
    expect(await ids(store, 'd')).toEqual(['ad', true]);
  });

  test('after an entry of the path comes only what follows it', async () => {
    const store = await forked();
    expect(await ids(store, 'c', 'a')).toEqual(['bc', false]);
    expect(await ids(store, 'c', 'c')).toEqual(['', false]);
  });

  test('after an entry off the path comes the whole path', async () => {
    const store = await forked();
    expect(await ids(store, 'd', 'b')).toEqual(['ad', true]);
    expect(await ids(store, 'd', 'nowhere')).toEqual(['ad', true]);
  });

  test('a leaf that is not there is not found', async () => {
    const store = await forked();
    await expect(store.readPath('s', 'nowhere')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('a path of 10,000 entries is one statement that looks each entry up by its key', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    const size = 2000;
    for (let part = 0; part < 5; part++) {
      const records = Array.from({ length: size }, (_, index) => entry(`${part * size + index}`));
      await store.commit(fence(`part${part}`), { records });
    }
    const file = join(path, 'everturn.db');
    const plans: string[] = [];
    const database = new DatabaseSync(file);
    const explain: KyselyPlugin = {
      transformQuery: ({ node, queryId }) => {
        const { sql, parameters } = new SqliteQueryCompiler().compileQuery(node, queryId);
        const plan = database.prepare(`explain query plan ${sql}`).all(...(parameters as string[]));
        plans.push(plan.map((step) => step.detail).join('\n'));
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const connection = await Connection.open<Tables>({ file, synchronous: 'FULL', busyTimeoutMs: 1000 });
    const found = await readPath(connection.db.withPlugin(explain), 's', '9999');
    connection.close();
    database.close();
    expect(found.entries.map(({ id }) => id)).toEqual(Array.from({ length: 10_000 }, (_, index) => `${index}`));
    expect(plans).toHaveLength(1);
    expect(plans[0]).toContain('SEARCH entries USING PRIMARY KEY (session_id=? AND entry_id=?)');
    expect(plans[0]).toMatch(/SEARCH records USING INDEX \S+ \(session_id=\? AND offset=\?\)/);
    expect(plans[0]).not.toMatch(/AUTOMATIC|SCAN (records|entries)/);
  });
});

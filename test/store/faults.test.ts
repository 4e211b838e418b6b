import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from '@jest/globals';
import { openThreads } from '../../src/store/open-store.ts';
import { storeOver } from '../../src/store/sqlite/store.ts';
import type { Store } from '../../src/store/types.ts';
import { entry, fence, settled, story, takeOver, tempFolder, tempSession, tempStore } from './helpers.ts';

function blob(size: number): { digest: string; data: Uint8Array } {
  const data = new Uint8Array(randomBytes(size));
  return { digest: createHash('sha256').update(data).digest('hex'), data };
}

describe('group commit', () => {
  test('of 50 commits at once the one that fails takes back its own writes alone', async () => {
    const store = await tempSession();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, (_, index) =>
        store.commit(fence(`e${index}`), {
          records: [entry(`e${index}`)],
          // Its entry is written by then: no batch has this call.
          ...(index === 20 ? { settle: [settled('r/9', 0)] } : {}),
        }),
      ),
    );
    expect(outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([20]);
    expect(outcomes[20]).toMatchObject({ reason: { code: 'not_found' } });
    const expected = Array.from({ length: 50 }, (_, index) => `user e${index}`);
    expect((await story(store)).slice(1)).toEqual(expected.filter((_, index) => index !== 20));
    expect(await store.verify('s')).toEqual({ ok: true, length: 50 });
  });

  test('calls are applied in the order in which they were made', async () => {
    const store = await tempSession();
    const first = store.beginEffect(fence('e', { attempt: 2 }));
    const zombie = store.commit(fence('e'), { records: [entry('late')] });
    await expect(zombie).rejects.toMatchObject({ code: 'fenced' });
    await first;
    expect(await story(store)).toEqual(['session_open']);
  });
});

describe('a full disk', () => {
  /** Fills the store until it refuses, and returns how many entries it took. */
  async function fill(store: Store, from: number): Promise<number> {
    for (let index = from; ; index++) {
      try {
        await store.commit(fence(`fill${index}`), { records: [entry(`f${index}`, 'x'.repeat(3000))] });
      } catch (error) {
        expect(error).toMatchObject({ code: 'store_full', retryable: true });
        expect((error as Error).message).toContain('free space on');
        return index - from;
      }
    }
  }

  test('refuses writes, keeps what it acknowledged, and goes on when there is room', async () => {
    const path = tempFolder();
    const store = await tempSession({ path, maxPages: 220 });
    const ballast = blob(200_000);
    await store.putBlob(ballast.digest, ballast.data);
    const taken = await fill(store, 0);
    expect(taken).toBeGreaterThan(20);
    expect(await store.verify('s')).toEqual({ ok: true, length: taken + 1 });

    const other = new DatabaseSync(join(path, 'everturn.db'));
    other.exec('delete from blobs');
    other.close();
    expect(await fill(store, taken)).toBeGreaterThan(20);
    await store.close();

    const roomy = await tempStore({ path });
    await roomy.commit(fence('more'), { records: [entry('more')] });
    expect(await roomy.verify('s')).toMatchObject({ ok: true });
  });

  test('fails the write that is too large, and not those that wait with it', async () => {
    const store = await tempSession({ maxPages: 220 });
    const large = blob(2_000_000);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, (_, index) =>
        index === 15
          ? store.putBlob(large.digest, large.data)
          : store.commit(fence(`e${index}`), { records: [entry(`e${index}`)] }),
      ),
    );
    expect(outcomes.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([15]);
    expect(outcomes[15]).toMatchObject({ reason: { code: 'store_full' } });
    expect(await store.verify('s')).toEqual({ ok: true, length: 30 });
    expect(await store.getBlob(large.digest)).toBeUndefined();
  });
});

describe('opening', () => {
  test('a path that cannot be a folder is named', async () => {
    const file = join(tempFolder(), 'file.txt');
    writeFileSync(file, 'x');
    await expect(tempStore({ path: join(file, 'inside') })).rejects.toMatchObject({
      code: 'store_unavailable',
      retryable: true,
      message: expect.stringContaining(file),
    });
  });

  test('an address of another kind of store is refused before a folder of that name is made', async () => {
    await expect(tempStore({ path: 'postgres://db/agents' })).rejects.toMatchObject({ code: 'invalid_config' });
  });

  test('a file that is no database is refused and left as it is', async () => {
    const file = join(tempFolder(), 'notes.txt');
    writeFileSync(file, 'not a database, but long enough to be looked at as one. '.repeat(40));
    await expect(tempStore({ path: file })).rejects.toMatchObject({ code: 'store', retryable: false });
  });

  test('a store of a newer version is refused', async () => {
    const path = tempFolder();
    await (await tempStore({ path })).close();
    const database = new DatabaseSync(join(path, 'everturn.db'));
    database.exec(`update meta set value = '99'`);
    database.close();
    await expect(tempStore({ path })).rejects.toMatchObject({
      code: 'store',
      retryable: false,
      details: { found: '99', known: 1 },
    });
  });

  test('a file name ends in .db, any other path is a folder', async () => {
    const folder = tempFolder();
    const store = await tempStore({ path: join(folder, 'deep', 'agents.db') });
    await takeOver(store, 'w1');
    await store.close();
    expect(await (await tempStore({ path: join(folder, 'deep', 'agents.db') })).readSession('s')).toBeDefined();
    expect(await (await tempStore({ path: folder })).readSession('s')).toBeUndefined();
  });

  test('pages that were overwritten are reported as damage', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    for (let index = 0; index < 50; index++) {
      await store.commit(fence(`e${index}`), { records: [entry(`e${index}`, 'x'.repeat(2000))] });
    }
    await store.close();
    const file = join(path, 'everturn.db');
    const bytes = readFileSync(file);
    bytes.fill(0xee, 4096 * Math.floor(bytes.length / 8192));
    writeFileSync(file, bytes);
    const damaged = await tempStore({ path });
    await expect(damaged.verify('s')).rejects.toMatchObject({ code: 'store', retryable: false });
  });
});

describe('the lock', () => {
  test('a writer waits for another process that holds it', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    const other = new DatabaseSync(join(path, 'everturn.db'));
    other.exec('begin immediate');
    const commit = store.commit(fence('e'), { records: [entry('a')] });
    expect((await store.readSession('s'))?.length).toBe(1);
    other.exec('commit');
    other.close();
    expect(await commit).toEqual({ leaf: 'a' });
  });

  test('one that is held for too long is an error that may be retried', async () => {
    const path = tempFolder();
    const store = await tempSession({ path, busyTimeoutMs: 100 });
    const other = new DatabaseSync(join(path, 'everturn.db'));
    other.exec('begin immediate');
    const late = store.commit(fence('e'), { records: [entry('a')] });
    await expect(late).rejects.toMatchObject({ code: 'store_unavailable', retryable: true });
    other.exec('commit');
    other.close();
    expect(await store.commit(fence('e'), { records: [entry('a')] })).toEqual({ leaf: 'a' });
  });
});

describe('the threads', () => {
  test('a crash fails what waits and what comes later', async () => {
    const threads = await openThreads({ path: tempFolder() });
    const store = storeOver(threads.log, threads.live);
    await takeOver(store, 'w1');
    const waiting = Array.from({ length: 200 }, (_, index) =>
      store.commit(fence(`e${index}`), { records: [entry(`e${index}`, 'x'.repeat(10_000))] }),
    );
    const settled = Promise.allSettled(waiting);
    await threads.log.terminate();
    const unavailable = { code: 'store_unavailable', retryable: true };
    expect((await settled).at(-1)).toMatchObject({ status: 'rejected', reason: unavailable });
    await expect(takeOver(store, 'w2')).rejects.toMatchObject(unavailable);
    expect(await store.verify('s')).toMatchObject({ ok: true });
    await store.close();
  });

  test('closing lets what waits finish, may be repeated, and ends the store', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    const commits = Array.from({ length: 100 }, (_, index) =>
      store.commit(fence(`e${index}`), { records: [entry(`e${index}`)] }),
    );
    const deltas = store.appendDeltas([
      { sessionId: 's', runId: 'r', entryId: 'e', attempt: 1, n: 0, delta: { type: 'reset' } },
    ]);
    await Promise.all([store.close(), store.close()]);
    await Promise.all([...commits, deltas]);
    await expect(store.readSession('s')).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(store.commit(fence('x'), {})).rejects.toMatchObject({ code: 'store_unavailable' });
    const again = await tempStore({ path });
    expect(await again.readSession('s')).toMatchObject({ length: 101 });
    expect(await again.lastDeltaSeq('s')).toBe(1);
  });

  test('what cannot be JSON fails its own call alone', async () => {
    const store = await tempSession();
    await expect(store.saveStep(fence('e'), 'n', 1n as never)).rejects.toThrow(TypeError);
    expect(await store.saveStep(fence('e'), 'n', 1)).toBe(1);
  });
});

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from '@jest/globals';
import type { Delta } from '../../src/store/types.ts';
import { entry, fence, startRun, tempFolder, tempSession, tempStore } from './helpers.ts';

function delta(n: number, over: Partial<Delta> = {}): Delta {
  return {
    sessionId: 's',
    runId: 'r',
    entryId: 'r/0',
    attempt: 1,
    n,
    delta: { type: 'text_delta', contentIndex: 0, delta: `d${n}` },
    ...over,
  };
}

describe('live deltas', () => {
  test('they come in order, by number, for their session alone', async () => {
    const store = await tempStore();
    expect(await store.lastDeltaSeq('s')).toBe(0);
    await store.appendDeltas([delta(0, { delta: { type: 'reset' } }), delta(1)]);
    await store.appendDeltas([delta(0, { sessionId: 'other' })]);
    await store.appendDeltas([delta(2)]);
    await store.appendDeltas([]);
    const all = await store.readDeltas('s', 0, 100);
    expect(all.map(({ seq: _seq, ...record }) => record)).toEqual(
      [delta(0, { delta: { type: 'reset' } }), delta(1), delta(2)].map(
        ({ sessionId: _sessionId, ...record }) => record,
      ),
    );
    expect(await store.readDeltas('s', all[0]!.seq, 1)).toEqual([all[1]]);
    expect(await store.lastDeltaSeq('s')).toBe(all[2]!.seq);
  });

  test('another opening of the same files reads them', async () => {
    const path = tempFolder();
    const writer = await tempStore({ path });
    const reader = await tempStore({ path });
    await writer.appendDeltas(Array.from({ length: 250 }, (_, n) => delta(n)));
    expect((await reader.readDeltas('s', 0, 1000)).map(({ n }) => n)).toEqual(Array.from({ length: 250 }, (_, n) => n));
  });

  test('those of ended and unknown runs go when they are old, and numbers are not used again', async () => {
    const store = await tempSession();
    await startRun(store, 'open');
    await startRun(store, 'ended');
    await store.commit(fence('end'), { closeRun: { runId: 'ended', status: 'done' } });
    await store.appendDeltas(['open', 'ended', 'unknown'].map((runId) => delta(0, { runId, entryId: `${runId}/7` })));
    const last = await store.lastDeltaSeq('s');
    expect(await store.pruneDeltas(Date.now() - 60_000)).toBe(0);
    expect(await store.pruneDeltas(Date.now() + 60_000)).toBe(2);
    expect((await store.readDeltas('s', 0, 10)).map(({ runId }) => runId)).toEqual(['open']);
    await store.appendDeltas([delta(1)]);
    expect(await store.lastDeltaSeq('s')).toBeGreaterThan(last);
  });

  test('of a run that goes on for months only those of what it is at work on stay', async () => {
    const store = await tempSession();
    await startRun(store, 'r');
    const said = Array.from({ length: 6_000 }, (_, n) => delta(n, { entryId: n % 2 === 0 ? 'said' : 'saying' }));
    await store.appendDeltas(said);
    await store.commit(fence('e'), { records: [entry('said')] });
    expect(await store.pruneDeltas(Date.now() + 60_000)).toBe(3_000);
    const left = await store.readDeltas('s', 0, 10_000);
    expect(left.map(({ entryId, n }) => [entryId, n])).toEqual(
      said.flatMap(({ entryId, n }) => (entryId === 'saying' ? [[entryId, n]] : [])),
    );
    expect(await store.pruneDeltas(Date.now() + 60_000)).toBe(0);
    await store.commit(fence('f'), { records: [entry('saying')] });
    expect(await store.pruneDeltas(Date.now() + 60_000)).toBe(3_000);
  });
});

describe('a commit that is asked for behind deltas', () => {
  /** Holds the lock that whoever writes deltas needs, until it is released. */
  function lockLive(path: string): () => void {
    const other = new DatabaseSync(join(path, 'live.db'));
    other.exec('begin immediate');
    return () => other.close();
  }

  test('is not readable before them', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    const reader = await tempStore({ path });
    const unlock = lockLive(path);
    const sentAt = performance.now();
    const deltas = store.appendDeltas([delta(0)]);
    const commit = store.commit(fence('e'), { records: [entry('e')] });
    let looks = 0;
    for (; performance.now() - sentAt < 100; looks++) {
      const log = await reader.readLog('s', 0, 10);
      // A machine that stood still for longer has seen the wait end.
      if (performance.now() - sentAt < 200) expect(log).toHaveLength(1);
    }
    expect(looks).toBeGreaterThan(0);
    unlock();
    await commit;
    expect(await reader.readDeltas('s', 0, 10)).toHaveLength(1);
    await deltas;
  });

  test('waits for them while they cannot be written, but not for long', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    const reader = await tempStore({ path });
    const unlock = lockLive(path);
    const order: string[] = [];
    const deltas = store.appendDeltas([delta(0)]).then(() => order.push('deltas'));
    await store.commit(fence('e'), { records: [entry('e')] });
    order.push('commit');
    expect(await reader.readLog('s', 0, 10)).toHaveLength(2);
    expect(await reader.readDeltas('s', 0, 10)).toEqual([]);
    unlock();
    await deltas;
    expect(order).toEqual(['commit', 'deltas']);
    expect(await reader.readDeltas('s', 0, 10)).toHaveLength(1);
  });

  test('waits no longer when there are many, and not again for the same deltas', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    const unlock = lockLive(path);
    const deltas = store.appendDeltas([delta(0)]);
    const started = performance.now();
    const commitAt = (n: number) => store.commit(fence(`e${n}`), { records: [entry(`e${n}`)] });
    await Promise.all(Array.from({ length: 20 }, (_, n) => commitAt(n)));
    for (let n = 20; n < 40; n++) await commitAt(n);
    expect(performance.now() - started).toBeLessThan(20 * 250);
    unlock();
    await deltas;
    // In order again.
    void store.appendDeltas([delta(1)]);
    await commitAt(40);
    expect(await store.readDeltas('s', 0, 10)).toHaveLength(2);
  });

  test('does not wait for reads that were asked for before', async () => {
    const store = await tempSession();
    const answered: string[] = [];
    const reads = Array.from({ length: 200 }, async () => {
      await store.readSession('s');
      answered.push('read');
    });
    await Promise.all([store.appendDeltas([delta(0)]).then(() => answered.push('deltas')), ...reads]);
    expect(answered.indexOf('deltas')).toBeLessThan(100);
  });

  test('is written when deltas before it could not be sent', async () => {
    const store = await tempSession();
    await expect(store.appendDeltas([delta(0, { n: 1n as never })])).rejects.toThrow(TypeError);
    const started = performance.now();
    for (let n = 0; n < 40; n++) await store.commit(fence(`e${n}`), { records: [entry(`e${n}`)] });
    // Each of them would wait for a quarter of a second if the count were off.
    expect(performance.now() - started).toBeLessThan(40 * 250);
    expect(await store.verify('s')).toMatchObject({ ok: true, length: 41 });
  });
});

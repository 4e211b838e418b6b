import { describe, expect, test } from '@jest/globals';
import type { Delta } from '../../src/store/types.ts';
import { fence, startRun, tempFolder, tempSession, tempStore } from './helpers.ts';

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
    await store.appendDeltas(['open', 'ended', 'unknown'].map((runId) => delta(0, { runId })));
    const last = await store.lastDeltaSeq('s');
    expect(await store.pruneDeltas(Date.now() - 60_000)).toBe(0);
    expect(await store.pruneDeltas(Date.now() + 60_000)).toBe(2);
    expect((await store.readDeltas('s', 0, 10)).map(({ runId }) => runId)).toEqual(['open']);
    await store.appendDeltas([delta(1)]);
    expect(await store.lastDeltaSeq('s')).toBeGreaterThan(last);
  });
});

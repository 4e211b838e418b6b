import { describe, expect, jest, test } from '@jest/globals';
import { RunWatcher } from '../src/client/run-watcher.ts';
import { EverturnError } from '../src/common/errors.ts';
import { noUsage } from '../src/common/usage.ts';
import type { RunKey, RunRow } from '../src/store/types.ts';

const runId = 'r1';
const keys = Array.from({ length: 20 }, (_, index) => ({ sessionId: `s${index}`, runId }));

/** A store of runs that end when they are told to, and what it was asked. */
function fakeStore() {
  const ended = new Set<string>();
  const looks: RunKey[][] = [];
  const readEndedRuns = async (asked: RunKey[]): Promise<RunRow[]> => {
    looks.push(asked);
    return asked
      .filter(({ sessionId }) => ended.has(sessionId))
      .map((key) => ({
        ...key,
        status: 'done',
        usage: noUsage,
        turns: 1,
        startedAt: 0,
        firstOffset: 0,
      }));
  };
  return { ended, looks, readEndedRuns };
}

const wait = { since: Date.now(), timeoutMs: 60_000 };

describe('a client that waits for many runs', () => {
  test('asks for all of them at once, and each wait ends with its own run', async () => {
    const store = fakeStore();
    const watcher = new RunWatcher(store);
    const waits = keys.map((key) => watcher.ended(key, wait));
    store.ended.add('s3');
    expect(await waits[3]).toMatchObject({ sessionId: 's3', status: 'done' });
    expect(store.looks[0]).toHaveLength(keys.length);
    for (const { sessionId } of keys) store.ended.add(sessionId);
    const runs = await Promise.all(waits);
    expect(runs.map((run) => run?.sessionId)).toEqual(keys.map(({ sessionId }) => sessionId));
    // The one that had ended was not asked for any more, and each look asked for all the others.
    for (const look of store.looks.slice(1)) expect(look).toHaveLength(keys.length - 1);
  });

  test('sees one that comes while a look is going on', async () => {
    const store = fakeStore();
    let late: Promise<RunRow | undefined> | undefined;
    const watcher: RunWatcher = new RunWatcher({
      readEndedRuns: async (asked) => {
        late ??= watcher.ended({ sessionId: 'late', runId }, wait);
        return store.readEndedRuns(asked);
      },
    });
    store.ended.add('s0').add('late');
    await watcher.ended({ sessionId: 's0', runId }, wait);
    expect(await late).toMatchObject({ sessionId: 'late' });
  });

  test('stops asking when nobody waits', async () => {
    jest.useFakeTimers();
    try {
      const store = fakeStore();
      const watcher = new RunWatcher(store);
      const waiting = watcher.ended({ sessionId: 's0', runId }, { ...wait, timeoutMs: 1_000 });
      await jest.advanceTimersByTimeAsync(1_000);
      expect(await waiting).toBeUndefined();
      const asked = store.looks.length;
      expect(asked).toBeGreaterThan(1);
      await jest.advanceTimersByTimeAsync(60_000);
      expect(store.looks).toHaveLength(asked);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('a wait', () => {
  test('ends with the reason of its signal, before and while it waits', async () => {
    const watcher = new RunWatcher(fakeStore());
    const controller = new AbortController();
    const waiting = watcher.ended({ sessionId: 's0', runId }, { ...wait, signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await expect(watcher.ended({ sessionId: 's0', runId }, { ...wait, signal: controller.signal })).rejects.toThrow(
      'enough',
    );
  });

  test('fails with what the store throws, and the next one asks again', async () => {
    const store = fakeStore();
    let broken = true;
    const watcher = new RunWatcher({
      readEndedRuns: async (asked) => {
        if (broken) throw new EverturnError('store_unavailable', 'gone', { retryable: true });
        return store.readEndedRuns(asked);
      },
    });
    const key = { sessionId: 's0', runId };
    await expect(watcher.ended(key, wait)).rejects.toMatchObject({ code: 'store_unavailable' });
    broken = false;
    store.ended.add('s0');
    expect(await watcher.ended(key, wait)).toMatchObject({ status: 'done' });
  });
});

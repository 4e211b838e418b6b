import { describe, expect, test } from '@jest/globals';
import type { Store } from '../../src/store/types.ts';
import { claim, claimTool, entry, fence, startBatch, story, takeOver, tempSession, tempStore } from './helpers.ts';

const byAttempt = { code: 'fenced', retryable: false, details: { reason: 'attempt', epoch: 1 } };
const byOwner = { code: 'fenced', retryable: false, details: { reason: 'owner', epoch: 2 } };

function writesOf(store: Store, zombie: ReturnType<typeof fence>): [string, () => Promise<unknown>][] {
  return [
    ['beginEffect', () => store.beginEffect(zombie)],
    ['saveStep', () => store.saveStep(zombie, 'step', 1)],
    ['commit', () => store.commit(zombie, { records: [entry('late')] })],
    ['beginEffect with a claim', () => claimTool(store, zombie, claim('r/0', 0))],
    ['saveProgress', () => store.saveProgress(zombie, 'r/0', 0, 1)],
  ];
}

describe('the fence', () => {
  test('once attempt 2 has begun, nothing of attempt 1 is written', async () => {
    const store = await tempSession();
    await startBatch(store, ['c']);
    await store.beginEffect(fence('e'));
    await store.beginEffect(fence('e', { attempt: 2 }));
    const before = await story(store);
    for (const [, write] of writesOf(store, fence('e'))) await expect(write()).rejects.toMatchObject(byAttempt);
    expect(await story(store)).toEqual(before);
    await store.commit(fence('e', { attempt: 2 }), { records: [entry('a')] });
  });

  test('a commit of attempt 2 shuts attempt 1 out even if attempt 2 never began', async () => {
    const store = await tempSession();
    await store.commit(fence('e', { attempt: 2 }), { records: [entry('a')] });
    await expect(store.commit(fence('e'), { records: [entry('b')] })).rejects.toMatchObject(byAttempt);
  });

  test('a repeated prompt does not get back the result of the run that had its id before', async () => {
    const store = await tempSession();
    const first = { runId: 'r', token: 'first' };
    await store.commit(fence('r/t0/model'), { openRun: first, records: [entry('a')], result: 'reply' });
    expect(await store.beginEffect(fence('r/t0/model', { attempt: 2 }), { openRun: first })).toMatchObject({
      result: 'reply',
    });
    await takeOver(store, 'w2');
    const again = fence('r/t0/model', { workflowRunId: 'w2' });
    const repeated = { runId: 'r', token: 'second' };
    expect(await store.beginEffect(again, { openRun: repeated })).not.toHaveProperty('result');
    expect(await store.commit(again, { openRun: repeated, records: [entry('b')] })).toMatchObject({
      leaf: 'a',
      duplicateRun: { runId: 'r' },
    });
  });

  test('attempts of one effect do not fence another', async () => {
    const store = await tempSession();
    await store.beginEffect(fence('e', { attempt: 5 }));
    await store.commit(fence('other'), { records: [entry('a')] });
  });

  test('once another workflow run owns the session, nothing of the first is written', async () => {
    const store = await tempSession();
    await startBatch(store, ['c']);
    await takeOver(store, 'w2', 'r');
    const before = await story(store);
    for (const [, write] of writesOf(store, fence('e'))) await expect(write()).rejects.toMatchObject(byOwner);
    expect(await story(store)).toEqual(before);
  });

  test('a write to a session that was never opened is not found', async () => {
    const store = await tempStore();
    await expect(store.beginEffect(fence('e'))).rejects.toMatchObject({ code: 'not_found' });
  });

  test('after a reset the new owner may begin with attempt 1, and the count of attempts goes on', async () => {
    const store = await tempSession();
    await store.beginEffect(fence('e', { attempt: 3 }));
    await takeOver(store, 'w2', 'r');
    const begun = await store.beginEffect(fence('e', { workflowRunId: 'w2' }));
    expect(begun).toMatchObject({ attempts: 2 });
    await store.commit(fence('e', { workflowRunId: 'w2' }), { records: [entry('a')] });
    expect(await story(store)).toEqual(['session_open', 'session_open', 'user a']);
  });
});

describe('effects', () => {
  test('a finished effect gives its result to the next attempt and to the next owner', async () => {
    const store = await tempSession();
    await store.commit(fence('e'), { records: [entry('a')], result: { ok: [1, null] } });
    expect(await store.beginEffect(fence('e', { attempt: 2 }))).toMatchObject({ result: { ok: [1, null] } });
    await takeOver(store, 'w2', 'r');
    expect(await store.beginEffect(fence('e', { workflowRunId: 'w2' }))).toMatchObject({ result: { ok: [1, null] } });
  });

  test('null is a result', async () => {
    const store = await tempSession();
    await store.commit(fence('e'), { result: null });
    expect(await store.beginEffect(fence('e', { attempt: 2 }))).toEqual({
      attempts: 2,
      result: null,
      steps: {},
      abortRequested: false,
    });
  });

  test('a second commit of a finished effect changes nothing and tells the leaf of now', async () => {
    const store = await tempSession();
    const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: 1 };
    await store.commit(fence('e'), { records: [entry('a')], usage, result: 1 });
    await store.commit(fence('f'), { records: [entry('b')] });
    const again = await store.commit(fence('e'), { records: [entry('c')], usage, result: 2 });
    expect(again).toEqual({ leaf: 'b', adopted: 1 });
    expect(await story(store)).toEqual(['session_open', 'user a', 'user b']);
    expect((await store.readSession('s'))?.usage).toEqual(usage);
    expect(await store.beginEffect(fence('e', { attempt: 2 }))).toMatchObject({ result: 1 });
  });

  test('the first outcome of a step wins and is there for the retry', async () => {
    const store = await tempSession();
    expect(await store.saveStep(fence('e'), 'hook', { n: 1 })).toEqual({ n: 1 });
    expect(await store.saveStep(fence('e'), 'hook', { n: 2 })).toEqual({ n: 1 });
    await store.saveStep(fence('e'), 'nothing', null);
    const begun = await store.beginEffect(fence('e', { attempt: 2 }));
    expect(begun).toEqual({ attempts: 2, steps: { hook: { n: 1 }, nothing: null }, abortRequested: false });
  });

  test('effects and attempts are counted by kind, for a run and for the session', async () => {
    const store = await tempSession();
    for (const attempt of [1, 2, 1_000_001]) await store.beginEffect(fence('r/0/model', { attempt }));
    await store.beginEffect(fence('r/0/model', { attempt: 1_000_001 }));
    await store.beginEffect(fence('r/1/model'));
    await store.beginEffect(fence('r/0/tool/0'));
    await store.beginEffect(fence('q/0/model', { runId: 'q' }));
    expect(await store.countEffects('s', 'r')).toEqual({
      effects: 3,
      attempts: 5,
      byKind: { model: { effects: 2, attempts: 4 }, tool: { effects: 1, attempts: 1 } },
    });
    expect(await store.countEffects('s')).toMatchObject({ effects: 4, attempts: 6 });
  });
});

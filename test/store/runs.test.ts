import { describe, expect, test } from '@jest/globals';
import type { RequestRecord } from '../../src/store/types.ts';
import { waitFor } from '../support/wait-for.ts';
import {
  assistant,
  defaults,
  entry,
  event,
  fence,
  startRun,
  story,
  takeOver,
  tempSession,
  tempStore,
} from './helpers.ts';

const usage = { input: 10, output: 5, cacheRead: 1, cacheWrite: 2, totalTokens: 18, cost: 0.5 };

describe('runs', () => {
  test('a run has its offsets, turns, usage and last reply', async () => {
    const store = await tempSession();
    await startRun(store);
    await store.commit(fence('r/0/model'), { records: [assistant('r/0', [])], usage, result: null });
    await store.commit(fence('r/1/model', { turn: 1 }), {
      records: [event('r/1/turn_start', { type: 'turn_start' }), assistant('r/1', [])],
      usage,
      result: null,
    });
    expect(await store.readSession('s')).toMatchObject({ openRunId: 'r', runs: 1 });
    await store.commit(fence('r/end'), {
      records: [event('r/agent_end', { type: 'agent_end', status: 'done' })],
      closeRun: { runId: 'r', status: 'done' },
    });
    const run = await store.readRun('s', 'r');
    expect(run).toMatchObject({
      status: 'done',
      turns: 2,
      firstOffset: 1,
      lastOffset: 7,
      lastAssistantId: 'r/1',
      usage: { input: 20, output: 10, cacheRead: 2, cacheWrite: 4, totalTokens: 36, cost: 1 },
    });
    expect(run?.endedAt).toBeGreaterThanOrEqual(run?.startedAt ?? Number.NaN);
    const session = await store.readSession('s');
    expect(session).toMatchObject({ runs: 1, usage: run?.usage });
    expect(session).not.toHaveProperty('openRunId');
  });

  test('of many runs those that have ended are read at once, each by session and id', async () => {
    const store = await tempSession();
    await startRun(store);
    await store.openSession({ sessionId: 'other', workflowRunId: 'w', defaults });
    const open = { runId: 'q', token: 't' };
    const other = fence('e', { sessionId: 'other', workflowRunId: 'w', runId: 'q' });
    await store.commit(other, { openRun: open });
    const many = Array.from({ length: 250 }, (_, index) => ({ sessionId: `s${index}`, runId: 'r' }));
    const own = { sessionId: 's', runId: 'r' };
    const keys = [...many, own, { sessionId: 'other', runId: 'q' }, { sessionId: 'other', runId: 'r' }];
    expect(await store.readEndedRuns(keys)).toEqual([]);
    await store.commit(fence('end'), { closeRun: { runId: 'r', status: 'done' } });
    await store.commit(other, { closeRun: { runId: 'q', status: 'aborted' } });
    const runs = await store.readEndedRuns(keys);
    expect(runs.map(({ sessionId, runId }) => `${sessionId}/${runId}`).sort()).toEqual(['other/q', 's/r']);
    expect(runs).toContainEqual(await store.readRun('s', 'r'));
    expect(await store.readEndedRuns([])).toEqual([]);
  });

  test('a retry of the commit that opened the run goes on, after a reset too', async () => {
    const store = await tempSession();
    const openRun = { runId: 'r', token: 't' };
    const records = [entry('a')];
    await store.commit(fence('e'), { openRun, records });
    expect(await store.commit(fence('e', { attempt: 2 }), { openRun, records })).toEqual({ leaf: 'a' });
    await takeOver(store, 'w2', 'r');
    expect(await store.commit(fence('e', { workflowRunId: 'w2' }), { openRun, records })).toEqual({ leaf: 'a' });
    expect(await store.readSession('s')).toMatchObject({ runs: 1 });
  });

  test('a run id that is used with another token applies nothing and gives the run that has it', async () => {
    const store = await tempSession();
    await startRun(store);
    await store.commit(fence('end'), { closeRun: { runId: 'r', status: 'aborted' }, result: 'kept' });
    const before = await store.readSession('s');
    for (const effect of ['other', 'end']) {
      const result = await store.commit(fence(effect), {
        openRun: { runId: 'r', token: 'second' },
        records: [entry('x')],
        settings: { model: 'p/other' },
        usage,
        result: 'new',
      });
      expect(result).toMatchObject({ leaf: 'r/prompt', duplicateRun: { runId: 'r', status: 'aborted', turns: 1 } });
    }
    expect(await store.readSession('s')).toEqual(before);
    expect(await store.beginEffect(fence('other', { attempt: 2 }))).not.toHaveProperty('result');
  });

  test('a run that has ended keeps how it ended', async () => {
    const store = await tempSession();
    await startRun(store);
    const error = { code: 'model_failed' as const, message: 'no' };
    await store.commit(fence('a'), { closeRun: { runId: 'r', status: 'error', error } });
    await store.commit(fence('b'), { closeRun: { runId: 'r', status: 'done' } });
    expect(await store.readRun('s', 'r')).toMatchObject({ status: 'error', error });
  });

  test('runs are listed oldest first, and unknown ones are undefined', async () => {
    const store = await tempSession();
    await startRun(store, 'z');
    await startRun(store, 'b');
    expect((await store.listRuns('s')).map((run) => run.runId)).toEqual(['z', 'b']);
    expect(await store.readRun('s', 'nope')).toBeUndefined();
    expect(await store.listRuns('nobody')).toEqual([]);
  });
});

describe('sessions', () => {
  test('settings stay for the next owner, whatever its defaults say', async () => {
    const store = await tempSession();
    await store.commit(fence('e'), {
      settings: { model: 'p/two', thinkingLevel: 'high', activeTools: ['read'] },
      records: [entry('a')],
    });
    expect(await takeOver(store, 'w2')).toEqual({
      epoch: 2,
      leaf: 'a',
      agent: 'coder',
      model: 'p/two',
      thinkingLevel: 'high',
      activeTools: ['read'],
      interruptedRuns: [],
    });
    await store.commit(fence('f', { workflowRunId: 'w2' }), { settings: { activeTools: null } });
    expect(await store.readSession('s')).toMatchObject({ activeTools: null, model: 'p/two' });
  });

  test('opening again from the same workflow run is no second epoch', async () => {
    const store = await tempSession();
    await startRun(store);
    const second = await takeOver(store, 'w2');
    expect(await takeOver(store, 'w2')).toEqual(second);
    expect(second).toMatchObject({ epoch: 2, interruptedRuns: ['r'] });
    expect((await story(store)).filter((word) => word === 'session_open')).toHaveLength(2);
  });

  test('a workflow run that lost the session cannot take it back', async () => {
    const store = await tempSession();
    await takeOver(store, 'w2');
    await expect(takeOver(store, 'w1')).rejects.toMatchObject({ code: 'fenced', details: { reason: 'owner' } });
  });

  test('the living workflow run takes the session back with a new epoch, once', async () => {
    const store = await tempSession();
    await startRun(store, 'mine');
    await takeOver(store, 'w2', 'mine');
    await startRun(store, 'theirs', [], 'w2');
    const request = { sessionId: 's', workflowRunId: 'w1', defaults, continuingRunId: 'mine', living: true };
    expect(await store.openSession(request)).toMatchObject({ epoch: 3, interruptedRuns: ['theirs'] });
    expect(await store.openSession(request)).toMatchObject({ epoch: 3, interruptedRuns: ['theirs'] });
    expect((await story(store)).filter((word) => word === 'session_open')).toHaveLength(3);
    await store.commit(fence('e'), { records: [entry('a')] });
    const zombie = store.commit(fence('f', { workflowRunId: 'w2' }), { records: [entry('b')] });
    await expect(zombie).rejects.toMatchObject({ code: 'fenced', details: { reason: 'owner', epoch: 3 } });
  });

  test('sessions are listed with the last used first', async () => {
    const store = await tempStore();
    for (const sessionId of ['one', 'two', 'three']) {
      await store.openSession({ sessionId, workflowRunId: 'w1', defaults });
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    let uses = 0;
    const order = await waitFor(
      async () => {
        uses += 1;
        await store.commit(fence('e', { sessionId: 'one' }), { records: [entry(`a${uses}`)] });
        const listed = (await store.listSessions()).map((session) => session.sessionId);
        // Uses are noted to a second.
        return listed[0] === 'one' && listed;
      },
      { what: 'the session that is used to stand first' },
    );
    expect(order).toEqual(['one', 'three', 'two']);
    expect(await store.listSessions({ limit: 1 })).toHaveLength(1);
    expect(await store.readSession('nobody')).toBeUndefined();
  });
});

describe('abort', () => {
  test('it reaches the effects of its run, and nobody else', async () => {
    const store = await tempSession();
    await startRun(store, 'r');
    await startRun(store, 'q');
    await store.requestAbort('s', 'r');
    await store.requestAbort('s', 'r');
    expect(await store.beginEffect(fence('e'))).toMatchObject({ abortRequested: true });
    expect(await store.beginEffect(fence('f', { runId: 'q' }))).toMatchObject({ abortRequested: false });
    expect(await store.readControls(['other', 's'])).toEqual([
      { sessionId: 's', runId: 'r', kind: 'abort', at: expect.any(Number) },
    ]);
    expect(await store.readControls(['other'])).toEqual([]);
    expect(await store.readControls([])).toEqual([]);
  });

  test('it is nothing for a run that has ended or that nobody knows', async () => {
    const store = await tempSession();
    await startRun(store);
    await store.requestAbort('s', 'r');
    await store.commit(fence('end'), { closeRun: { runId: 'r', status: 'aborted' } });
    await store.requestAbort('s', 'r');
    await store.requestAbort('s', 'unknown');
    await store.requestAbort('nobody', 'r');
    expect(await store.readControls(['s', 'nobody'])).toEqual([]);
  });

  test('controls of thousands of sessions are one call', async () => {
    const store = await tempSession();
    await startRun(store);
    await store.requestAbort('s', 'r');
    const many = Array.from({ length: 2500 }, (_, index) => `s${index}`);
    expect(await store.readControls([...many, 's'])).toHaveLength(1);
  });
});

describe('requests', () => {
  function request(runId: string, turn: number, refs: string): RequestRecord {
    const messages = [...refs].map((ref) => (ref === ref.toUpperCase() ? { blob: ref } : { entry: ref }));
    return { runId, turn, messages, frame: `frame-${turn}` };
  }

  test('what each turn was given comes back, whatever the turns before were given', async () => {
    const store = await tempSession();
    const lists = ['a', 'abc', 'abcde', 'aBcdef', 'Z', 'Zgh', '', 'Zghi', 'Zg', 'Zgxyz'];
    for (const [turn, refs] of lists.entries()) {
      await store.commit(fence(`r/${turn}/model`), { request: request('r', turn, refs) });
    }
    for (const [turn, refs] of lists.entries()) {
      expect(await store.readRequest('s', 'r', turn)).toEqual(request('r', turn, refs));
    }
    expect(await store.readRequest('s', 'r', 99)).toBeUndefined();
  });

  test('random lists come back', async () => {
    const store = await tempSession();
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % below;
    };
    const lists: string[] = [];
    let list = '';
    for (let turn = 0; turn < 120; turn++) {
      const letter = () => String.fromCharCode((random(2) === 0 ? 65 : 97) + random(26));
      list = list.slice(0, random(6) === 0 ? random(list.length + 1) : list.length);
      list += Array.from({ length: random(4) }, letter).join('');
      lists.push(list);
      await store.commit(fence(`r/${turn}/model`), { request: request('r', turn, list) });
    }
    for (const [turn, refs] of lists.entries()) {
      expect(await store.readRequest('s', 'r', turn)).toEqual(request('r', turn, refs));
    }
  });

  test('the last turn may be given anew, an earlier one keeps what it had', async () => {
    const store = await tempSession();
    await store.commit(fence('a'), { request: request('r', 0, 'abc') });
    await store.commit(fence('b'), { request: request('r', 0, 'abc') });
    await store.commit(fence('c'), { request: request('r', 0, 'Sc') });
    await store.commit(fence('d'), { request: request('r', 1, 'Scd') });
    await store.commit(fence('e'), { request: request('r', 0, 'xyz') });
    expect(await store.readRequest('s', 'r', 0)).toEqual(request('r', 0, 'Sc'));
    expect(await store.readRequest('s', 'r', 1)).toEqual(request('r', 1, 'Scd'));
  });
});

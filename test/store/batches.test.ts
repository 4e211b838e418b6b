import { describe, expect, test } from '@jest/globals';
import {
  claim,
  claimTool,
  entry,
  fence,
  settled,
  startBatch,
  startOf,
  story,
  takeOver,
  tempSession,
} from './helpers.ts';

const tool = (index: number, over = {}) => fence(`r/0/tool/${index}`, over);
const opening = ['session_open', 'agent_start', 'turn_start', 'user r/prompt', 'assistant r/0'];

describe('claims', () => {
  test('the first claim enters and appends the start', async () => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    const start = startOf('r/0', 0, 'a');
    expect(await claimTool(store, tool(0), { ...claim('r/0', 0), start })).toEqual({ state: 'entered' });
    expect(await story(store)).toEqual([...opening, 'tool_execution_start a']);
  });

  test('a tool that must not be replayed is entered once, whoever asks again', async () => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    const start = startOf('r/0', 0, 'a');
    await claimTool(store, tool(0), { ...claim('r/0', 0), start });
    await store.saveProgress(tool(0), 'r/0', 0, { percent: 40 });
    const unknown = { state: 'unknown', progress: { percent: 40 } };
    expect(await claimTool(store, tool(0), { ...claim('r/0', 0), start })).toEqual(unknown);
    expect(await claimTool(store, tool(0, { attempt: 2 }), claim('r/0', 0))).toEqual(unknown);
    await takeOver(store, 'w2', 'r');
    expect(await claimTool(store, tool(0, { workflowRunId: 'w2' }), claim('r/0', 0))).toEqual(unknown);
    expect(await claimTool(store, tool(0, { workflowRunId: 'w2' }), claim('r/0', 0, 'safe'))).toEqual(unknown);
    expect((await story(store)).filter((word) => word.startsWith('tool'))).toEqual(['tool_execution_start a']);
  });

  test.each(['safe', 'keyed'] as const)('a %s tool is entered again, and the entries are counted', async (replay) => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    expect(await claimTool(store, tool(0), claim('r/0', 0, replay))).toEqual({ state: 'entered' });
    await store.saveProgress(tool(0), 'r/0', 0, 'half');
    const again = (entries: number) => ({ state: 'again', entries, progress: 'half' });
    expect(await claimTool(store, tool(0, { attempt: 2 }), claim('r/0', 0, replay))).toEqual(again(2));
    expect(await claimTool(store, tool(0, { attempt: 3 }), claim('r/0', 0, replay))).toEqual(again(3));
  });

  test('of an aborted run, or when it is only asked about, nothing is entered, and it is told whether somebody was in', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b']);
    const asked = { ...claim('r/0', 0), withhold: true, start: startOf('r/0', 0, 'a') };
    expect(await claimTool(store, tool(0), asked)).toEqual({ state: 'withheld', before: false });
    expect(await story(store)).toEqual(opening);
    expect(await claimTool(store, tool(0), claim('r/0', 0))).toEqual({ state: 'entered' });
    await store.requestAbort('s', 'r');
    expect(await claimTool(store, tool(0, { attempt: 2 }), claim('r/0', 0))).toEqual({
      state: 'withheld',
      before: true,
    });
    expect(await claimTool(store, tool(1), claim('r/0', 1))).toEqual({ state: 'withheld', before: false });
    await store.commit(tool(1), { settle: [settled('r/0', 1)] });
    expect(await claimTool(store, tool(1, { attempt: 2 }), claim('r/0', 1))).toMatchObject({ state: 'settled' });
  });

  test('50 claims at once enter a tool once', async () => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    const claims = await Promise.all(
      Array.from({ length: 50 }, (_, index) => claimTool(store, fence(`e${index}`), claim('r/0', 0))),
    );
    expect(claims.filter(({ state }) => state === 'entered')).toHaveLength(1);
    expect(claims.filter(({ state }) => state === 'unknown')).toHaveLength(49);
  });

  test('a settled call gives its result to whoever claims it', async () => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    await store.commit(tool(0), { settle: [settled('r/0', 0, { before: [startOf('r/0', 0, 'a')] })] });
    const result = await claimTool(store, tool(0, { attempt: 2 }), claim('r/0', 0));
    expect(result).toEqual({ state: 'settled', settled: settled('r/0', 0) });
  });

  test('a call that no batch registered is not found', async () => {
    const store = await tempSession();
    const missing = { code: 'not_found' };
    await expect(claimTool(store, tool(0), claim('r/9', 0))).rejects.toMatchObject(missing);
    await expect(store.saveProgress(tool(0), 'r/9', 0, 1)).rejects.toMatchObject(missing);
    await expect(store.addLateResult('s', 'r/9', 0, 1)).rejects.toMatchObject(missing);
    await expect(store.commit(tool(0), { settle: [settled('r/9', 0)] })).rejects.toMatchObject(missing);
  });
});

describe('settling', () => {
  test('a call that is settled keeps what it has, and whoever settles it again is told', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b']);
    const unknown = settled('r/0', 0, { outcome: 'unknown', isError: true });
    const close = fence('append');
    expect(await store.commit(close, { settle: [unknown] })).not.toHaveProperty('settledBefore');
    const before = await story(store);

    const own = { settle: [settled('r/0', 0, { before: [startOf('r/0', 0, 'a')] })], result: 'own' };
    expect(await store.commit(tool(0), own)).toMatchObject({ settledBefore: [unknown] });
    expect(await store.commit(tool(0), own)).toMatchObject({ settledBefore: [unknown] });
    expect(await story(store)).toEqual(before);
    // What the model was told is what counts for a later attempt too.
    expect(await store.beginEffect(tool(0, { attempt: 2 }))).not.toHaveProperty('result');
    expect((await store.commit(tool(1), { settle: [settled('r/0', 1)] })).settledBefore).toBeUndefined();
  });

  test('ends come as calls settle, results in source order with the last of them', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b', 'c']);
    await store.commit(tool(2), { settle: [settled('r/0', 2)] });
    await store.commit(tool(0), { settle: [settled('r/0', 0)] });
    expect(await story(store)).toEqual([...opening, 'tool_execution_end c', 'tool_execution_end a']);
    expect(await store.commit(tool(1), { settle: [settled('r/0', 1)], after: [entry('next')] })).toEqual({
      leaf: 'next',
    });
    expect((await story(store)).slice(opening.length + 2)).toEqual([
      'tool_execution_end b',
      'toolResult r/0/0',
      'toolResult r/0/1',
      'toolResult r/0/2',
      'user next',
    ]);
  });

  test('a sequential call has its result right after its end', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b']);
    for (const index of [0, 1]) {
      const before = [startOf('r/0', index, index === 0 ? 'a' : 'b')];
      await store.commit(tool(index), { settle: [settled('r/0', index, { sequential: true, before })] });
    }
    expect((await story(store)).slice(opening.length)).toEqual([
      'tool_execution_start a',
      'tool_execution_end a',
      'toolResult r/0/0',
      'tool_execution_start b',
      'tool_execution_end b',
      'toolResult r/0/1',
    ]);
  });

  test('the result message has what the model needs and no undefined fields', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b']);
    const usage = { input: 1, output: 2, cacheRead: 0, cacheWrite: 0, totalTokens: 3 };
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    const content = [{ type: 'text' as const, text: 'x' }];
    await store.commit(tool(0), {
      settle: [
        settled('r/0', 0),
        settled('r/0', 1, {
          outcome: 'failed',
          isError: true,
          result: { content, details: { a: 1 }, usage: { ...usage, cost }, terminate: true },
        }),
      ],
    });
    const entries = await store.readEntries('s', ['r/0/0', 'r/0/1']);
    expect(entries[0]).toEqual({
      type: 'message',
      id: 'r/0/0',
      parentId: 'r/0',
      timestamp: '2023-11-14T22:13:20.000Z',
      message: {
        role: 'toolResult',
        toolCallId: 'a',
        toolName: 'read',
        content: [{ type: 'text', text: 'result 0' }],
        isError: false,
        timestamp: 1_700_000_000_000,
      },
    });
    expect(entries[1]).toMatchObject({
      parentId: 'r/0/0',
      message: { toolCallId: 'b', content, details: { a: 1 }, usage: { ...usage, cost }, isError: true },
    });
    expect(entries[1]).not.toHaveProperty('message.terminate');
  });

  test('a settled call keeps what it has', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b']);
    await store.commit(tool(0), { settle: [settled('r/0', 0)] });
    const other = settled('r/0', 0, { outcome: 'aborted', isError: true, before: [startOf('r/0', 0, 'a')] });
    await store.commit(tool(0, { attempt: 2 }), { settle: [other, settled('r/0', 1)] });
    expect((await store.readBatch('s', 'r/0'))?.calls[0]?.settled).toEqual(settled('r/0', 0));
    expect((await story(store)).slice(opening.length)).toEqual([
      'tool_execution_end a',
      'tool_execution_end b',
      'toolResult r/0/0',
      'toolResult r/0/1',
    ]);
  });

  test('two batches with the same call ids stay apart', async () => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    await store.commit(tool(0), { settle: [settled('r/0', 0)] });
    await store.commit(fence('r/1/model', { turn: 1 }), {
      batch: {
        entryId: 'r/1',
        calls: [{ index: 0, toolCallId: 'a', toolName: 'read', resultEntryId: 'r/1/0', args: {} }],
      },
    });
    expect(await claimTool(store, fence('r/1/tool/0', { turn: 1 }), claim('r/1', 0))).toEqual({ state: 'entered' });
  });

  test('a late result is kept beside the call, the first one, and not in the transcript', async () => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    await claimTool(store, tool(0), claim('r/0', 0));
    await takeOver(store, 'w2');
    const before = await story(store);
    await store.addLateResult('s', 'r/0', 0, { content: 'true one' });
    await store.addLateResult('s', 'r/0', 0, { content: 'again' });
    expect(await story(store)).toEqual(before);
    expect((await store.readBatch('s', 'r/0'))?.calls).toEqual([
      {
        index: 0,
        toolCallId: 'a',
        toolName: 'read',
        resultEntryId: 'r/0/0',
        args: { path: 'a' },
        claimed: true,
        settled: expect.objectContaining({ outcome: 'unknown', isError: true }),
        lateResult: { content: 'true one' },
      },
    ]);
    expect(await store.readBatch('s', 'r/9')).toBeUndefined();
  });
});

import { describe, expect, test } from '@jest/globals';
import type { Store } from '../../src/store/types.ts';
import {
  claim,
  claimTool,
  entry,
  event,
  fence,
  readAll,
  settled,
  startBatch,
  startOf,
  startRun,
  story,
  takeOver,
  tempSession,
} from './helpers.ts';

/** What the next owner appends when it opens the session. */
async function closing(store: Store): Promise<string[]> {
  const before = (await story(store)).length;
  await takeOver(store, 'w2');
  expect(await store.verify('s')).toMatchObject({ ok: true });
  return (await story(store)).slice(before);
}

/** Every start of the log and how many ends it has. */
async function unended(store: Store): Promise<string[]> {
  const ends: Record<string, string> = {
    agent_start: 'agent_end',
    turn_start: 'turn_end',
    tool_execution_start: 'tool_execution_end',
  };
  const events = (await readAll(store)).flatMap(({ body, turn, runId }) =>
    body.kind === 'event'
      ? [{ of: `${runId} ${'toolCallId' in body.event ? `${turn} ${body.event.toolCallId}` : ''}`, ...body.event }]
      : [],
  );
  return events
    .filter(({ type }) => type in ends)
    .filter(
      (start) =>
        events.filter((end) => end.type === ends[start.type] && end.of === start.of).length !==
        events.filter((same) => same.type === start.type && same.of === start.of).length,
    )
    .map(({ type }) => type);
}

const end = ['agent_end', 'settled'];

describe('a run that its owner left open', () => {
  test('with nothing in the log is just closed', async () => {
    const store = await tempSession();
    await store.commit(fence('e'), { openRun: { runId: 'r', token: 't' } });
    expect(await closing(store)).toEqual(['session_open']);
    expect(await store.readRun('s', 'r')).toMatchObject({ status: 'interrupted', turns: 0 });
  });

  test('before its first request ends without a turn', async () => {
    const store = await tempSession();
    await store.commit(fence('e'), {
      openRun: { runId: 'r', token: 't' },
      records: [event('r/agent_start', { type: 'agent_start' }), entry('r/prompt')],
    });
    expect(await closing(store)).toEqual(['session_open', ...end]);
    expect(await unended(store)).toEqual([]);
    expect((await readAll(store)).at(-2)?.body).toEqual({
      kind: 'event',
      event: { type: 'agent_end', status: 'interrupted' },
    });
  });

  test('in mid-stream gets an aborted message without content, which turn_end names', async () => {
    const store = await tempSession();
    await startRun(store);
    expect(await closing(store)).toEqual(['session_open', 'assistant r/0', 'turn_end', ...end]);
    expect(await unended(store)).toEqual([]);
    const log = await readAll(store);
    expect(log.at(-3)?.body).toEqual({
      kind: 'event',
      event: { type: 'turn_end', messageId: 'r/0', toolResultIds: [] },
    });
    expect(log.at(-4)?.body).toMatchObject({
      entry: { parentId: 'r/prompt', message: { content: [], stopReason: 'aborted', provider: 'faux', model: 'one' } },
    });
    expect(await store.readRun('s', 'r')).toMatchObject({
      status: 'interrupted',
      lastAssistantId: 'r/0',
      lastOffset: log.length - 1,
    });
    expect(await store.readSession('s')).toMatchObject({ leaf: 'r/0', epoch: 2 });
  });

  test('with a half-settled batch keeps what is settled and says the truth about the rest', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b', 'c', 'd']);
    for (const index of [0, 1]) {
      const start = startOf('r/0', index, 'abcd'[index]!);
      await claimTool(store, fence(`r/0/tool/${index}`), { ...claim('r/0', index), start });
    }
    await store.commit(fence('r/0/gate'), { records: [startOf('r/0', 3, 'd')] });
    await store.commit(fence('r/0/tool/1'), { settle: [settled('r/0', 1)] });
    expect(await closing(store)).toEqual([
      'session_open',
      'tool_execution_end a',
      'tool_execution_start c',
      'tool_execution_end c',
      'tool_execution_end d',
      'toolResult r/0/0',
      'toolResult r/0/1',
      'toolResult r/0/2',
      'toolResult r/0/3',
      'turn_end',
      ...end,
    ]);
    expect(await unended(store)).toEqual([]);
    const calls = (await store.readBatch('s', 'r/0'))?.calls ?? [];
    expect(calls.map((call) => call.settled?.outcome)).toEqual(['unknown', 'completed', 'aborted', 'aborted']);
    expect(calls[0]?.settled?.result.content).toEqual([
      {
        type: 'text',
        text: 'Interrupted, outcome unknown: the tool was started and its session was closed before it reported. It may or may not have taken effect.',
      },
    ]);
    expect(calls[2]?.settled?.result.content).toEqual([
      { type: 'text', text: 'Interrupted before it started: the session was closed' },
    ]);
    expect((await readAll(store)).at(-3)?.body).toMatchObject({
      event: { messageId: 'r/0', toolResultIds: ['r/0/0', 'r/0/1', 'r/0/2', 'r/0/3'] },
    });
  });

  test('after sequential results gets only those that are missing', async () => {
    const store = await tempSession();
    await startBatch(store, ['a', 'b']);
    await store.commit(fence('r/0/tool/0'), {
      settle: [settled('r/0', 0, { sequential: true, before: [startOf('r/0', 0, 'a')] })],
    });
    expect(await closing(store)).toEqual([
      'session_open',
      'tool_execution_start b',
      'tool_execution_end b',
      'toolResult r/0/1',
      'turn_end',
      ...end,
    ]);
  });

  test('in a later turn ends that turn alone', async () => {
    const store = await tempSession();
    await startBatch(store, ['a']);
    await store.commit(fence('r/0/tool/0'), {
      settle: [settled('r/0', 0, { before: [startOf('r/0', 0, 'a')] })],
      after: [event('r/0/turn_end', { type: 'turn_end', messageId: 'r/0', toolResultIds: ['r/0/0'] })],
    });
    await store.commit(fence('r/1/model', { turn: 1 }), {
      records: [event('r/1/turn_start', { type: 'turn_start' })],
    });
    expect(await closing(store)).toEqual(['session_open', 'assistant r/1', 'turn_end', ...end]);
    expect(await unended(store)).toEqual([]);
  });

  test('with a start that no batch knows gets its end', async () => {
    const store = await tempSession();
    await startRun(store, 'r', [startOf('r/0', 0, 'a')]);
    expect(await closing(store)).toEqual(['session_open', 'tool_execution_end a', 'assistant r/0', 'turn_end', ...end]);
  });

  test('says how many messages wait for the next run', async () => {
    const store = await tempSession();
    const queue = { added: [], steer: [], followUp: ['x'], nextTurn: ['m1', 'm2'] };
    await startRun(store, 'r', [event('q1', { type: 'queue_update', ...queue })]);
    await takeOver(store, 'w2');
    expect((await readAll(store)).at(-1)?.body).toMatchObject({ event: { type: 'settled', nextTurnCount: 2 } });
  });

  test('goes on when it is the one that continues, and the others end', async () => {
    const store = await tempSession();
    await startRun(store, 'old');
    await startRun(store, 'r');
    expect(await takeOver(store, 'w2', 'r')).toMatchObject({ interruptedRuns: ['old'] });
    expect(await store.readRun('s', 'r')).toMatchObject({ status: 'open' });
    await store.commit(fence('next', { workflowRunId: 'w2' }), { records: [entry('a')] });
    expect(await takeOver(store, 'w3')).toMatchObject({ interruptedRuns: ['r'] });
    expect(await unended(store)).toEqual([]);
  });

  test('that ended in the log but not in its row takes how it ended from the log', async () => {
    const store = await tempSession();
    await startRun(store);
    await store.commit(fence('end'), {
      records: [
        event('r/0/turn_end', { type: 'turn_end', messageId: 'r/0', toolResultIds: [] }),
        event('r/agent_end', { type: 'agent_end', status: 'done' }),
        event('r/settled', { type: 'settled', nextTurnCount: 0 }),
      ],
    });
    expect(await closing(store)).toEqual(['session_open']);
    expect(await store.readRun('s', 'r')).toMatchObject({ status: 'done' });
  });
});

import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { defineTool } from '../../src/agent/tool.ts';
import { queryNames } from '../../src/common/signals.ts';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';
import { waitFor } from '../support/wait-for.ts';

const entered = new Entered();
const look = defineTool({
  name: 'look',
  description: 'takes effect nowhere, so it may be run again',
  parameters: z.object({ at: z.string() }),
  replay: 'safe',
  async execute({ at }, context) {
    entered.note(context, 'enter');
    await harness.gates.pass(`${context.sessionId}/${at}`, context.signal);
    return 'seen';
  },
});
const harness: Harness = useHarness({
  agents: () => [testAgent('plain', { tools: [...loopTools(harness, entered), look] })],
  worker: { graceMs: 50, onNotice: () => undefined },
});

/** Resets the workflow to the decision that scheduled the n-th activity of a type: it is scheduled again. */
async function resetBefore(talk: Talk, activity: string, n = 0): Promise<void> {
  const { events } = await talk.workflow.fetchHistory();
  const scheduled = (events ?? []).filter(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === activity,
  )[n];
  const workflowTaskFinishEventId = scheduled?.activityTaskScheduledEventAttributes?.workflowTaskCompletedEventId;
  await harness.temporal.workflowService.resetWorkflowExecution({
    namespace: 'default',
    workflowExecution: { workflowId: talk.sessionId },
    reason: 'test',
    requestId: randomUUID(),
    workflowTaskFinishEventId: workflowTaskFinishEventId ?? null,
  });
}

const script = [{ calls: [{ name: 'say', args: { text: 'effect' } }] }, { text: 'A' }, { text: 'B' }];

test('after a reset of a finished run its tool is not entered again, its messages stand once, and the session goes on', async () => {
  const talk = harness.talk('plain', script);
  talk.accepted.push('one', 'two');
  const before = await talk.session.run('one', { runId: 'r1' });
  const written = await talk.events('r1');
  await resetBefore(talk, 'executeTool');
  await talk.session.waitForIdle();
  expect(await talk.session.run('two', { runId: 'r2' })).toMatchObject({ status: 'done', text: 'B' });
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0', 'leave call-0-0']);
  expect(await talk.events('r1')).toEqual(written);
  expect(await talk.session.result('r1')).toEqual(before);
  expect(talk.asked).toEqual([
    ['user: one'],
    ['user: one', 'assistant:  +say', 'result of say: effect'],
    ['user: one', 'assistant:  +say', 'result of say: effect', 'assistant: A', 'user: two'],
  ]);
});

test('a reset to before the model was asked gets the stored reply', async () => {
  const talk = harness.talk('plain', script);
  talk.accepted.push('one', 'two');
  await talk.session.run('one', { runId: 'r1' });
  await resetBefore(talk, 'streamAssistantResponse');
  await talk.session.waitForIdle();
  expect(await talk.session.run('two', { runId: 'r2' })).toMatchObject({ status: 'done', text: 'B' });
  expect(talk.requests).toHaveLength(3);
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0', 'leave call-0-0']);
});

test('a reset while a never tool runs gives its call an unknown outcome, and the true result stays beside it', async () => {
  const talk = harness.talk('plain', [
    { calls: [{ name: 'stubborn', args: { at: 'tool', text: 'true' } }] },
    { text: 'A' },
  ]);
  talk.accepted.push('one');
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.reached('tool');
  await resetBefore(talk, 'executeTool');
  expect(await talk.session.result('r1')).toMatchObject({ status: 'done', text: 'A' });
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0']);
  expect(talk.asked[1]?.[2]).toMatch(/^result of stubborn \(error\): .*outcome unknown/);
  talk.open('tool');
});

test('a reset in mid-stream asks the model again, and no reader glues the two replies', async () => {
  const talk = harness.talk('plain', (request) => ({
    text: 'Hello world',
    ...(request.attempt === 1 ? { holdUntilFile: 'hold', holdAfterChunks: 2 } : {}),
  }));
  talk.accepted.push('one');
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.held('hold');
  await resetBefore(talk, 'streamAssistantResponse');
  expect(await talk.session.result('r1')).toMatchObject({ status: 'done', text: 'Hello world' });
  talk.release('hold');
});

test('messages that were steered before and after the place of a reset stand once, in order', async () => {
  const talk = harness.talk('plain', [
    { calls: [{ name: 'say', args: { at: 't0' } }] },
    { calls: [{ name: 'say', args: { at: 't1' } }] },
    ...['A', 'B', 'C', 'D', 'E'].map((text) => ({ text })),
  ]);
  const steer = async (text: string) => {
    talk.accepted.push(text);
    await talk.session.steer(text);
    await talk.logged(
      (event) => event.type === 'queue_update' && JSON.stringify(event.steer).includes(`"${text}"`),
      text,
    );
  };
  talk.accepted.push('one');
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.reached('t0');
  await steer('s1');
  talk.open('t0');
  await talk.reached('t1');
  await steer('s2');
  await steer('s3');
  await resetBefore(talk, 'executeTool', 1);
  talk.open('t1');
  expect(await talk.session.result('r1')).toMatchObject({ status: 'done' });
  await talk.session.waitForIdle();
  expect((await talk.transcript()).filter((line) => line.startsWith('user'))).toEqual([
    'user: one',
    'user: s1',
    'user: s2',
    'user: s3',
  ]);
});

test('a message and a setting that a reset brings before a stored reply are written with the next one', async () => {
  const talk = harness.talk('plain', [
    { calls: [{ name: 'say', args: { text: 'first' } }] },
    { calls: [{ name: 'look', args: { at: 't1' } }] },
    { text: 'A' },
    { text: 'B' },
  ]);
  talk.accepted.push('one', 's1', 'two');
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.reached('t1');
  await talk.session.steer('s1');
  await talk.session.setThinkingLevel('high');
  await talk.logged((event) => event.type === 'queue_update' && event.steer.length === 1, 'the steer');
  await resetBefore(talk, 'streamAssistantResponse', 1);
  await waitFor(async () => (await talk.workflow.query<string | null>(queryNames.leaf)) === 'r1/1', {
    what: 'the reply that was there to be the leaf again',
  });
  await waitFor(() => entered.of(talk.sessionId).filter((word) => word.startsWith('enter')).length === 3, {
    what: 'the tool to be entered again',
  });
  talk.open('t1');
  expect(await talk.session.result('r1')).toMatchObject({ status: 'done', text: 'A' });
  await talk.session.waitForIdle();
  expect(await talk.session.run('two', { runId: 'r2' })).toMatchObject({ status: 'done', text: 'B' });
  expect(talk.asked[2]?.slice(-2)).toEqual(['result of look: seen', 'user: s1']);
  expect((await talk.transcript()).filter((line) => line.startsWith('user'))).toEqual([
    'user: one',
    'user: s1',
    'user: two',
  ]);
  const changes = (await talk.raw()).filter(({ type }) => type === 'thinking_level_update');
  expect(changes).toMatchObject([{ level: 'high' }]);
});

test('messages that opened runs of their own stand once when a reset brings them into the run before', async () => {
  const talk = harness.talk('plain', [...script, { text: 'C' }, { text: 'D' }]);
  talk.accepted.push('one', 'second', 'third');
  await talk.session.run('one', { runId: 'r1' });
  for (const text of ['second', 'third']) {
    await talk.session.followUp(text);
    await talk.session.waitForIdle();
  }
  const before = await talk.transcript();
  expect(before.slice(-4)).toEqual(['user: second', 'assistant: B', 'user: third', 'assistant: C']);
  await resetBefore(talk, 'streamAssistantResponse', 1);
  await talk.session.waitForIdle();
  expect(await talk.transcript()).toEqual(before);
  expect(talk.requests).toHaveLength(4);
});

test('a steer that a later turn of the run had taken along is answered after a reset to before it came', async () => {
  const talk = harness.talk('plain', ({ reply, attempt }) => ({
    text: ['A', 'B'][reply] ?? 'too many',
    ...(attempt === 1 ? { holdUntilFile: `hold${reply}`, holdAfterChunks: 0 } : {}),
  }));
  talk.accepted.push('one', 's1');
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.held('hold0');
  await talk.session.steer('s1');
  talk.release('hold0');
  await talk.held('hold1');
  await resetBefore(talk, 'streamAssistantResponse');
  expect(await talk.session.result('r1')).toMatchObject({ status: 'done', text: 'B' });
  talk.release('hold1');
  expect((await talk.transcript()).slice(-3)).toEqual(['assistant: A', 'user: s1', 'assistant: B']);
});

test('a run that a reset into the run before interrupts stays so, and the session goes on', async () => {
  const talk = harness.talk('plain', ({ reply, attempt }) => ({
    text: ['A', 'B', 'C'][reply] ?? 'too many',
    ...(reply === 1 && attempt === 1 ? { holdUntilFile: 'hold', holdAfterChunks: 0 } : {}),
  }));
  talk.accepted.push('one', 'second', 'two');
  await talk.session.run('one', { runId: 'r1' });
  await talk.session.followUp('second');
  await talk.held('hold');
  await resetBefore(talk, 'streamAssistantResponse');
  talk.release('hold');
  await talk.session.waitForIdle();
  expect(await talk.session.run('two', { runId: 'r2' })).toMatchObject({ status: 'done' });
  const asked = talk.asked.at(-1) ?? [];
  expect(asked.filter((line) => line.startsWith('user'))).toEqual(['user: one', 'user: second', 'user: two']);
});

test('a run that a steer opened goes on after a reset to its beginning', async () => {
  const talk = harness.talk('plain', ({ reply, attempt }) => ({
    text: ['A', 'B'][reply] ?? 'too many',
    ...(reply === 1 && attempt === 1 ? { holdUntilFile: 'hold', holdAfterChunks: 0 } : {}),
  }));
  talk.accepted.push('one', 'second');
  await talk.session.run('one', { runId: 'r1' });
  await talk.session.steer('second');
  await talk.held('hold');
  await resetBefore(talk, 'streamAssistantResponse', 1);
  await waitFor(async () => (await talk.transcript()).at(-1) === 'assistant: B', { what: 'the answer' });
  talk.release('hold');
  await talk.session.waitForIdle();
  expect(await talk.transcript()).toEqual(['user: one', 'assistant: A', 'user: second', 'assistant: B']);
  const ends = (await talk.raw()).flatMap((event) => (event.type === 'agent_end' ? [event.status] : []));
  expect(ends).toEqual(['done', 'done']);
});

test('a message for the next turn is still one after a reset to before it came', async () => {
  const talk = harness.talk('plain', script.slice(1));
  talk.accepted.push('one', 'later', 'two');
  await talk.session.run('one', { runId: 'r1' });
  await talk.session.nextTurn('later');
  await talk.logged((event) => event.type === 'queue_update' && event.nextTurn.length === 1, 'the message');
  await resetBefore(talk, 'streamAssistantResponse');
  await talk.session.waitForIdle();
  expect(await talk.session.queues()).toMatchObject({ steer: [], followUp: [], nextTurn: [{}] });
  expect(await talk.session.run('two', { runId: 'r2' })).toMatchObject({ text: 'B' });
  expect(talk.asked).toEqual([['user: one'], ['user: one', 'assistant: A', 'user: later', 'user: two']]);
});

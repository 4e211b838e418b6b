import { expect, test } from '@jest/globals';
import type { Agent } from '../../src/agent/agent.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';
import { waitFor } from '../support/wait-for.ts';

const entered = new Entered();
const asksFirst: Agent = testAgent('asks-first', {
  async getSteeringMessages() {
    await harness.gates.pass('poll');
    await waitFor(() => asksFirst.signal?.aborted, { what: 'the abort' });
    return [];
  },
});
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness, entered) }),
    testAgent('sequential', { tools: loopTools(harness, entered), toolExecution: 'sequential' }),
    asksFirst,
  ],
  worker: { graceMs: 100 },
});

const aborted = { status: 'aborted' };

test('an abort in mid-stream keeps the partial message and reaches the provider', async () => {
  const talk = harness.talk('plain', [
    { text: 'Once upon a time', chunks: 4, holdUntilFile: 'hold', holdAfterChunks: 2 },
    { text: 'Fine' },
  ]);
  talk.accepted.push('Go', 'On');
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  const answer = await talk.session.abort();
  expect(answer).toEqual({ runId, clearedSteer: [], clearedFollowUp: [] });
  expect(await talk.session.result(runId)).toMatchObject({
    ...aborted,
    text: 'Once upo',
    message: { stopReason: 'aborted', errorMessage: 'Request was aborted' },
  });
  // The note that the queues were cleared comes by itself, whenever the signal is there.
  expect((await talk.events(runId)).filter((word) => word !== 'queue []')).toEqual([
    ...[
      'agent_start',
      'turn_start',
      'user: Go',
      'assistant: Once upo',
      'turn_end',
      'agent_end: aborted',
      'settled',
      'abort queue []',
    ],
  ]);
  expect(await talk.session.run('On')).toMatchObject({ status: 'done', text: 'Fine' });
});

test('an abort clears steering and follow-ups, returns them, and keeps what is for the next turn', async () => {
  const talk = harness.talk('plain', [
    { text: 'Once upon', holdUntilFile: 'hold', holdAfterChunks: 1 },
    { text: 'Fine' },
  ]);
  talk.accepted.push('Go', 'next', 'P');
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  for (const text of ['s1', 's2']) await talk.session.steer(text);
  await talk.session.followUp('f1');
  await talk.session.nextTurn('next');
  const answer = await talk.session.abort(runId);
  const texts = (items: { message: unknown }[]) =>
    items.map(({ message }) => (message as { content: { text: string }[] }).content[0]?.text);
  expect({ steer: texts(answer.clearedSteer), followUp: texts(answer.clearedFollowUp) }).toEqual({
    steer: ['s1', 's2'],
    followUp: ['f1'],
  });
  expect(await talk.session.queues()).toMatchObject({
    steer: [],
    followUp: [],
    nextTurn: [{ content: [{ text: 'next' }] }],
  });
  expect((await talk.events(runId)).slice(-3)).toEqual([
    'agent_end: aborted',
    'settled, 1 for the next turn',
    'abort queue [steer: s1, s2; followUp: f1]',
  ]);
  await talk.session.run('P');
  expect(talk.asked[1]?.filter((line) => line.startsWith('user'))).toEqual(['user: Go', 'user: next', 'user: P']);
});

test('the control record alone aborts a run and clears its queues: the client may die before it signals', async () => {
  const talk = harness.talk('plain', [{ text: 'Once upon', holdUntilFile: 'hold', holdAfterChunks: 1 }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  await talk.session.steer('s1');
  await talk.logged((event) => event.type === 'queue_update', 's1 in the queue');
  await harness.store.requestAbort(talk.sessionId, runId);
  expect(await talk.session.result(runId)).toMatchObject(aborted);
  expect((await talk.events(runId)).slice(-1)).toEqual(['abort queue [steer: s1]']);
  expect(await talk.session.queues()).toMatchObject({ steer: [] });
});

test('the signal alone aborts a run, as by hand', async () => {
  const talk = harness.talk('plain', [{ text: 'Once upon', holdUntilFile: 'hold', holdAfterChunks: 1 }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  await talk.workflow.signal('abort');
  expect(await talk.session.result(runId)).toMatchObject({ ...aborted, text: 'Onc' });
});

test('an abort in a parallel batch: finished calls keep their results, running ones end as aborted, one that is deaf as unknown', async () => {
  const calls = [
    { id: 'a', name: 'say', args: { text: 'A' } },
    { id: 'b', name: 'say', args: { at: 'b' } },
    { id: 'c', name: 'stubborn', args: { at: 'c' } },
  ];
  const talk = harness.talk('plain', [{ calls }, { text: 'never' }, { text: 'Fine' }]);
  const { runId } = await talk.session.prompt('Go');
  await Promise.all([talk.reached('b'), talk.reached('c')]);
  await talk.logged((event) => event.type === 'tool_execution_end' && event.toolCallId === 'a', 'the end of a');
  await talk.session.abort();
  const results = [
    'result of say: A',
    'result of say (error): Operation aborted',
    'result of stubborn (error): Operation aborted, outcome unknown: the tool did not stop.',
  ];
  // pi: one more turn, whose reply is empty and aborted.
  expect((await talk.events(runId)).slice(4).filter((word) => word !== 'queue []')).toEqual([
    ...[
      'start a',
      'start b',
      'start c',
      'end a: completed',
      'end b: aborted',
      'end c: aborted',
      ...results,
      'turn_end a b c',
    ],
    ...['turn_start', 'assistant: ', 'turn_end', 'agent_end: aborted', 'settled', 'abort queue []'],
  ]);
  expect(await talk.session.run('And?')).toMatchObject({ text: 'Fine' });
  expect(talk.asked[1]).toEqual([
    'user: Go',
    'assistant:  +say +say +stubborn',
    ...results,
    'assistant: ',
    'user: And?',
  ]);
  talk.open('c');
  const late = async () => (await harness.store.readBatch(talk.sessionId, `${runId}/0`))?.calls[2]?.lateResult;
  expect(await waitFor(late, { what: 'the late result' })).toMatchObject({ result: 'ok' });
});

test('an abort of a named run that is not going on does nothing', async () => {
  const talk = harness.talk('plain', [
    { text: 'A' },
    { calls: [{ name: 'say', args: { at: 'tool' } }] },
    { text: 'B' },
  ]);
  const first = await talk.session.run('one');
  const { runId } = await talk.session.prompt('two');
  await talk.reached('tool');
  expect(await talk.session.abort(first.runId)).toMatchObject({ runId: first.runId, clearedSteer: [] });
  await talk.workflow.signal('abort', { runId: 'some-other-run' });
  talk.open('tool');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done', text: 'B' });
});

test('an abort while nothing runs returns at once and changes nothing', async () => {
  const talk = harness.talk('plain', [{ text: 'A' }, { text: 'B' }]);
  await talk.session.run('one');
  const before = await talk.events();
  expect(await talk.session.abort()).toEqual({ clearedSteer: [], clearedFollowUp: [] });
  expect(await talk.events()).toEqual(before);
  expect(await talk.session.run('two')).toMatchObject({ text: 'B' });
});

test('an abort before the first request writes the prompt and an empty aborted reply, and asks nobody', async () => {
  const talk = harness.talk('asks-first', [{ text: 'never' }]);
  talk.accepted.push('Go');
  const { runId } = await talk.session.prompt('Go');
  await harness.gates.reached('poll');
  const aborting = talk.session.abort(runId);
  await waitFor(async () => (await talk.session.status()).phase === 'aborting', { what: 'the abort' });
  harness.gates.open('poll');
  await aborting;
  expect(await talk.events(runId)).toEqual([
    ...[
      'agent_start',
      'turn_start',
      'user: Go',
      'queue []',
      'assistant: ',
      'turn_end',
      'agent_end: aborted',
      'settled',
      'abort queue []',
    ],
  ]);
  expect(talk.requests).toEqual([]);
  expect(await talk.session.result(runId)).toMatchObject({ ...aborted, message: { stopReason: 'aborted' } });
});

test('two aborts at once get the same answer', async () => {
  const talk = harness.talk('plain', [{ text: 'Once upon', holdUntilFile: 'hold', holdAfterChunks: 1 }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  await talk.session.steer('s1');
  const [one, two] = await Promise.all([talk.session.abort(runId), talk.session.abort(runId)]);
  expect(one).toEqual(two);
  expect(one?.clearedSteer).toHaveLength(1);
});

test('a cancelled workflow ends its run as aborted, with what waited', async () => {
  const talk = harness.talk('plain', [
    { text: 'Once upon', holdUntilFile: 'hold', holdAfterChunks: 1 },
    { text: 'Fine' },
  ]);
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  await talk.session.followUp('f1');
  await talk.logged((event) => event.type === 'queue_update', 'f1 in the queue');
  await talk.workflow.cancel();
  expect(await talk.session.result(runId)).toMatchObject(aborted);
  expect((await talk.events(runId)).at(-1)).toBe('abort queue [followUp: f1]');
  await talk.closed();
  expect(await talk.session.run('On')).toMatchObject({ text: 'Fine' });
});

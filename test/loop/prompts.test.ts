import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

const entered = new Entered();
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness, entered) }),
    testAgent('brief', { tools: loopTools(harness, entered), lingerMs: 1 }),
    testAgent('asking', {
      lingerMs: 1,
      getSteeringMessages: () => [{ role: 'user', content: [{ type: 'text', text: 'hooked' }], timestamp: 1 }],
    }),
  ],
});

const holding = { calls: [{ name: 'say', args: { at: 'tool' } }] };

test('a prompt while a run goes on is refused with code busy, and leaves no trace', async () => {
  const talk = harness.talk('plain', [holding, { text: 'A' }, { text: 'B' }]);
  talk.accepted.push('one', 'two');
  const { runId } = await talk.session.prompt('one');
  await talk.reached('tool');
  const busy = { code: 'busy', message: expect.stringContaining(runId), details: { runId } };
  await expect(talk.session.prompt('two', { runId: 'r2' })).rejects.toMatchObject(busy);
  talk.open('tool');
  await talk.session.result(runId);
  // The same id may be used again: the refusal is not remembered.
  expect(await talk.session.run('two', { runId: 'r2' })).toMatchObject({ runId: 'r2', text: 'B' });
});

test("onBusy 'steer' and 'followUp' say what became of the message", async () => {
  const talk = harness.talk('plain', [holding, { text: 'A' }, { text: 'B' }]);
  talk.accepted.push('one', 's', 'f');
  const { runId } = await talk.session.prompt('one', { onBusy: 'steer' });
  await talk.reached('tool');
  expect(await talk.session.prompt('f', { onBusy: 'followUp' })).toEqual({ became: 'queued', runId });
  // Sent again, as after a lost answer, it is not a second message.
  for (const _ of [1, 2])
    expect(await talk.session.prompt('s', { onBusy: 'steer', runId: 'mine' })).toEqual({ became: 'steered', runId });
  talk.open('tool');
  await talk.session.result(runId);
  const begun = ['user: one', 'assistant:  +say', 'result of say: ok', 'user: s'];
  expect(talk.asked.slice(1)).toEqual([begun, [...begun, 'assistant: A', 'user: f']]);
});

test("onBusy 'interrupt' aborts the run and opens the next one", async () => {
  const talk = harness.talk('plain', [holding, { text: 'unused' }, { text: 'B' }]);
  talk.accepted.push('one', 'two');
  const first = await talk.session.prompt('one');
  await talk.reached('tool');
  await talk.session.followUp('cleared');
  await talk.logged((event) => event.type === 'queue_update', 'the follow-up');
  const second = await talk.session.prompt('two', { onBusy: 'interrupt' });
  expect(second.became).toBe('opened');
  expect(await talk.session.result(first.runId)).toMatchObject({ status: 'aborted' });
  expect(await talk.session.result(second.runId)).toMatchObject({ status: 'done', text: 'B' });
  expect((await talk.events(first.runId)).at(-1)).toBe('abort queue [followUp: cleared]');
});

test('of two prompts at once one opens a run and the other is told that it is busy', async () => {
  const talk = harness.talk('plain', [{ text: 'A' }]);
  const answers = await Promise.allSettled([talk.session.prompt('one'), talk.session.prompt('two')]);
  expect(answers.map((answer) => answer.status).sort()).toEqual(['fulfilled', 'rejected']);
  const refused = answers.find((answer) => answer.status === 'rejected');
  expect(refused?.reason).toMatchObject({ code: 'busy' });
  await talk.session.waitForIdle();
  expect(await harness.store.listRuns(talk.sessionId)).toHaveLength(1);
});

test('of two prompts at once with onBusy steer one opens a run and the other joins it', async () => {
  const talk = harness.talk('plain', () => ({ text: 'A' }));
  talk.accepted.push('one', 'two');
  const answers = await Promise.all(['one', 'two'].map((text) => talk.session.prompt(text, { onBusy: 'steer' })));
  expect(answers.map(({ became }) => became).sort()).toEqual(['opened', 'steered']);
  expect(new Set(answers.map(({ runId }) => runId)).size).toBe(1);
  await talk.session.result(answers[0]!.runId);
});

test('the same run id is the same run: at once, while it goes on, and after it', async () => {
  const talk = harness.talk('plain', [holding, { text: 'A' }]);
  talk.accepted.push('Go');
  const prompt = () => talk.session.prompt('Go', { runId: 'r1' });
  const answer = { became: 'opened', runId: 'r1' };
  expect(await Promise.all([prompt(), prompt(), prompt()])).toEqual([answer, answer, answer]);
  await talk.reached('tool');
  expect(await prompt()).toEqual(answer);
  talk.open('tool');
  const first = await talk.session.result('r1');
  expect(await talk.session.run('Go', { runId: 'r1' })).toEqual(first);
  expect(talk.requests).toHaveLength(2);
});

test('a run id is known after the workflow has completed, and nothing is asked or written twice', async () => {
  const talk = harness.talk('brief', [{ text: 'A' }, { text: 'B' }]);
  talk.accepted.push('one', 'two');
  const first = await talk.session.run('one', { runId: 'r1' });
  await talk.closed();
  const before = (await talk.events()).filter((word) => word !== 'session_open');
  expect(await talk.session.run('one', { runId: 'r1' })).toEqual(first);
  await talk.closed();
  const again = await Promise.all([1, 2].map(() => talk.session.run('one', { runId: 'r1' })));
  expect(again).toEqual([first, first]);
  expect((await talk.events()).filter((word) => word !== 'session_open')).toEqual(before);
  await talk.closed();
  expect(await talk.session.run('two')).toMatchObject({ text: 'B' });
  expect(talk.asked).toEqual([['user: one'], ['user: one', 'assistant: A', 'user: two']]);
});

test('a repeated prompt leaves what waits for the next turn where it is', async () => {
  const talk = harness.talk('brief', [{ text: 'A' }, { text: 'B' }]);
  talk.accepted.push('one', 'later', 'two');
  await talk.session.run('one', { runId: 'r1' });
  await talk.closed();
  await talk.session.nextTurn('later');
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.session.waitForIdle();
  expect(await talk.session.queues()).toMatchObject({
    steer: [],
    followUp: [],
    nextTurn: [{ content: [{ text: 'later' }] }],
  });
  await talk.session.run('two');
  expect(talk.asked).toEqual([['user: one'], ['user: one', 'assistant: A', 'user: later', 'user: two']]);
});

test('a repeated prompt of an agent with a queue hook does not write what the hook said again', async () => {
  const talk = harness.talk('asking', () => ({ text: 'A' }));
  talk.accepted.push('one');
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.logged((event) => event.type === 'message_end' && event.message.role === 'assistant', 'the reply');
  await talk.session.abort('r1');
  await talk.session.waitForIdle();
  const before = await talk.transcript();
  await talk.closed();
  await talk.session.prompt('one', { runId: 'r1' });
  await talk.session.waitForIdle();
  expect(await talk.transcript()).toEqual(before);
});

test('the workflow completes after lingerMs, and the next prompt finds the conversation in the store', async () => {
  const talk = harness.talk('brief', [{ text: 'A' }, { text: 'B' }, { text: 'C' }]);
  talk.accepted.push('one', 'two', 'three');
  for (const text of ['one', 'two', 'three']) {
    await talk.session.run(text);
    await talk.closed();
  }
  expect(talk.asked[2]).toEqual(['user: one', 'assistant: A', 'user: two', 'assistant: B', 'user: three']);
  expect((await talk.raw()).flatMap((event) => (event.type === 'session_open' ? [event.epoch] : []))).toEqual([
    1, 2, 3,
  ]);
  expect(await talk.session.status()).toMatchObject({ phase: 'idle', epoch: 3 });
});

test('the result of a run can be asked for at any time, and is the same', async () => {
  const talk = harness.talk('brief', [{ text: 'A' }]);
  const waiting = talk.session.run('one', { runId: 'r1' });
  const result = await waiting;
  await talk.closed();
  expect(await talk.session.result('r1')).toEqual(result);
  await expect(talk.session.result('no such run')).rejects.toMatchObject({ code: 'invalid_argument' });
  await expect(talk.session.result('nobody-ever')).rejects.toMatchObject({
    code: expect.stringMatching(/session_closed|not_found/),
  });
});

test('the result of a run whose workflow was terminated is session_closed; the next prompt ends it as interrupted', async () => {
  const talk = harness.talk('plain', [holding, { text: 'B' }]);
  talk.accepted.push('one', 'two');
  const { runId } = await talk.session.prompt('one');
  await talk.reached('tool');
  await talk.workflow.terminate();
  await expect(talk.session.result(runId)).rejects.toMatchObject({
    code: 'session_closed',
    message: expect.stringContaining('next prompt'),
  });
  expect(await talk.session.run('two')).toMatchObject({ status: 'done', text: 'B' });
  expect(await talk.session.result(runId)).toMatchObject({ status: 'interrupted' });
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0']);
  expect(talk.asked[1]).toEqual([
    'user: one',
    'assistant:  +say',
    expect.stringMatching(/result of say \(error\): Interrupted, outcome unknown/),
    'user: two',
  ]);
  talk.open('tool');
});

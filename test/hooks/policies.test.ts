import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

// What pi 1.6 calls finishTurn and prepareRequest, and early termination, as policies. shouldStopAfterTurn and
// prepareNextTurn have their tests in test/loop/policies.test.ts.

const harness: Harness = useHarness({
  agents: () => ['hooks-1.6', 'hooks-early'].map((name) => testAgent(name, { tools: loopTools(harness) })),
});

const say = (text: string) => ({ calls: [{ name: 'say', args: { text } }] });

async function run(agent: string, prompt: string, replies: object[]) {
  const talk = harness.talk(agent, replies);
  const { runId } = await talk.session.prompt(prompt, { runId: 'r' });
  return { talk, result: await talk.session.result(runId) };
}

test('finishTurn continue asks for one more request, which nothing else asks for', async () => {
  const { talk, result } = await run('hooks-1.6', 'once more', [{ text: 'first' }, { text: 'last' }]);
  expect(result).toMatchObject({ status: 'done', text: 'last', turns: 2 });
  expect(talk.asked).toEqual([['user: once more'], ['user: once more', 'assistant: first']]);
});

test('finishTurn end stops a run whose calls would go on, after turn_end', async () => {
  const { talk, result } = await run('hooks-1.6', 'end at once', [say('a'), { text: 'never' }]);
  expect(result).toMatchObject({ status: 'done', turns: 1 });
  expect((await talk.events('r')).slice(-3)).toEqual(['turn_end call-0-0', 'agent_end: done', 'settled']);
});

test('shouldStopAfterTurn is asked behind finishTurn, and stops what it would continue', async () => {
  const { result } = await run('hooks-1.6', 'once more, but stop anyway', [{ text: 'first' }, { text: 'last' }]);
  expect(result).toMatchObject({ text: 'first', turns: 1 });
});

test('prepareRequest is asked before every request, with what it will send, and what it returns counts at once', async () => {
  const { talk } = await run('hooks-1.6', 'prepare', [say('a'), { text: 'Done' }]);
  expect(talk.requests.map(({ systemPrompt, options }) => [systemPrompt, options.reasoning])).toEqual([
    ['scripted/main off, 1 messages, the last of user', 'low'],
    ['scripted/main low, 3 messages, the last of toolResult', 'high'],
  ]);
});

test('what prepareRequest changes for a repeated run is not left to the next one', async () => {
  const talk = harness.talk('hooks-1.6', [{ text: 'A' }, { text: 'B' }]);
  await talk.session.run('prepare', { runId: 'r' });
  await talk.workflow.terminate();
  await talk.session.run('prepare', { runId: 'r' });
  await talk.session.waitForIdle();
  expect((await talk.session.status()).thinkingLevel).toBe('off');
  expect(talk.requests).toHaveLength(1);
});

test('a repeated run whose prepareRequest throws leaves what waits for the next turn where it is', async () => {
  const talk = harness.talk('hooks-1.6', [{ text: 'A' }]);
  const { runId } = await talk.session.prompt('prepare throws', { runId: 'r' });
  await expect(talk.session.result(runId)).rejects.toMatchObject({ code: 'policy' });
  await talk.workflow.terminate();
  await talk.session.nextTurn('later');
  await talk.session.prompt('prepare throws', { runId: 'r' });
  await talk.session.waitForIdle();
  expect(await talk.session.queues()).toMatchObject({ nextTurn: [{ content: [{ text: 'later' }] }] });
});

test.each([
  ['finish throws', 'finishTurn of agent "hooks-1.6" threw: finish is broken', ['user: finish throws', 'assistant: A']],
  [
    'prepare throws',
    'prepareRequest of agent "hooks-1.6" threw: prepare is broken',
    ['user: prepare throws', 'assistant: '],
  ],
])('a policy that throws ends the run, and its message is saved: %s', async (prompt, message, transcript) => {
  const talk = harness.talk('hooks-1.6', [{ text: 'A' }]);
  talk.accepted.push(prompt);
  const { runId } = await talk.session.prompt(prompt);
  await expect(talk.session.result(runId)).rejects.toMatchObject({ code: 'policy', message });
  expect(await talk.transcript()).toEqual(transcript);
});

test('early termination stops at the marker, and what waits starts with the next run', async () => {
  const talk = harness.talk('hooks-early', [
    { ...say('a'), gate: 'reply' },
    { text: 'It is TASK_COMPLETE' },
    { text: 'And now' },
    { text: 'Later' },
  ]);
  talk.accepted.push('Go', 'later', 'next');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('reply');
  await talk.session.followUp('later');
  talk.open('reply');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done', turns: 2, text: 'It is TASK_COMPLETE' });
  expect(await talk.session.run('next')).toMatchObject({ text: 'Later' });
  expect(talk.asked[3]?.slice(-3)).toEqual(['user: next', 'assistant: And now', 'user: later']);
});

test('early termination stops after a batch of terminating tools that went well', async () => {
  const { result } = await run('hooks-early', 'Go', [
    { calls: [{ name: 'stop' }, { name: 'stop' }] },
    { text: 'never' },
  ]);
  expect(result).toMatchObject({ turns: 1 });
  const mixed = await run('hooks-early', 'Go', [{ calls: [{ name: 'stop' }, { name: 'say' }] }, { text: 'Done' }]);
  expect(mixed.result).toMatchObject({ turns: 2 });
});

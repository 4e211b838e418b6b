import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

// https://github.com/Yeachan-Heo/gajae-code/issues/5199 and https://github.com/craft-ai-agents/craft-agents-oss/issues/1040:
// several steers in the two modes, and a change of mode while they wait.

const harness: Harness = useHarness({ agents: () => [testAgent('plain', { tools: loopTools(harness) })] });

const begun = ['user: Go', 'assistant:  +say', 'result of say: ok'];

test.each([
  { modes: ['all'], lasts: ['user: s3'], turns: 2 },
  { modes: ['one-at-a-time'], lasts: ['user: s1', 'user: s2', 'user: s3'], turns: 4 },
  { modes: ['all', 'one-at-a-time', 'all'], lasts: ['user: s3'], turns: 2 },
] as const)('three steers in mode $modes', async ({ modes, lasts, turns }) => {
  const talk = harness.talk('plain', [
    { calls: [{ name: 'say', args: { at: 'a' } }] },
    { text: 'A' },
    { text: 'B' },
    { text: 'C' },
  ]);
  talk.accepted.push('Go', 's1', 's2', 's3');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('a');
  for (const text of ['s1', 's2', 's3']) await talk.session.steer(text);
  for (const mode of modes) await talk.session.setQueueMode('steer', mode);
  talk.open('a');
  expect(await talk.session.result(runId)).toMatchObject({ turns });
  expect(talk.asked.slice(1).map((messages) => messages.at(-1))).toEqual(lasts);
  expect(talk.asked[1]?.slice(0, 3)).toEqual(begun);
});

test('a mode that changes between two drains counts from the next one', async () => {
  const talk = harness.talk('plain', [
    { calls: [{ name: 'say', args: { at: 'a' } }] },
    { text: 'A', gate: 'second' },
    { text: 'B' },
  ]);
  talk.accepted.push('Go', 's1', 's2', 's3');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('a');
  for (const text of ['s1', 's2', 's3']) await talk.session.steer(text);
  await talk.logged((event) => event.type === 'queue_update' && event.steer.length === 3, 'three steers');
  talk.open('a');
  await talk.reached('second');
  await talk.session.setQueueMode('steer', 'all');
  talk.open('second');
  expect(await talk.session.result(runId)).toMatchObject({ turns: 3 });
  expect(talk.asked.slice(1)).toEqual([
    [...begun, 'user: s1'],
    [...begun, 'user: s1', 'assistant: A', 'user: s2', 'user: s3'],
  ]);
});

import { expect, test } from '@jest/globals';
import type { SessionEvent } from '../../src/common/events.ts';
import { textOf } from '../../src/common/messages.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

const harness: Harness = useHarness({
  agents: () => [
    testAgent('one', { tools: loopTools(harness) }),
    testAgent('all', { tools: loopTools(harness), steeringMode: 'all', followUpMode: 'all' }),
  ],
});

const holding = { calls: [{ name: 'say', args: { at: 'tool' } }] };
const begun = ['user: Go', 'assistant:  +say', 'result of say: ok'];

/** A run that waits in its first tool. */
async function runInTool(agent: string, replies: string[]) {
  const talk = harness.talk(agent, [holding, ...replies.map((text) => ({ text }))]);
  talk.accepted.push('Go');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('tool');
  const send = async (queue: 'steer' | 'followUp' | 'nextTurn', ...texts: string[]) => {
    for (const text of texts) await talk.session[queue](text);
    talk.accepted.push(...texts);
    const last = texts.at(-1) ?? '';
    const waits = (event: SessionEvent) =>
      event.type === 'queue_update' && event[queue].some(({ message }) => textOf(message) === last);
    await talk.logged(waits, `${last} in the queue`);
  };
  return { talk, runId, send, goOn: () => talk.open('tool') };
}

test('steering in mode all: every message that waits, after the results of the turn', async () => {
  const { talk, runId, send, goOn } = await runInTool('all', ['Done']);
  await send('steer', 's1', 's2', 's3');
  goOn();
  await talk.session.result(runId);
  expect(talk.asked[1]).toEqual([...begun, 'user: s1', 'user: s2', 'user: s3']);
  expect(await talk.events(runId)).toEqual([
    ...['agent_start', 'turn_start', 'user: Go', 'assistant:  +say', 'start call-0-0'],
    ...['queue [steer: s1]', 'queue [steer: s1, s2]', 'queue [steer: s1, s2, s3]'],
    ...[
      'end call-0-0: completed',
      'result of say: ok',
      'turn_end call-0-0',
      'queue []',
      'turn_start',
      'user: s1',
      'user: s2',
      'user: s3',
    ],
    ...['assistant: Done', 'turn_end', 'agent_end: done', 'settled'],
  ]);
});

test('steering one at a time: one message for each turn, also when the model has nothing more to do', async () => {
  const { talk, runId, send, goOn } = await runInTool('one', ['A', 'B', 'C']);
  await send('steer', 's1', 's2', 's3');
  goOn();
  expect(await talk.session.result(runId)).toMatchObject({ text: 'C', turns: 4 });
  expect(talk.asked[3]).toEqual([...begun, 'user: s1', 'assistant: A', 'user: s2', 'assistant: B', 'user: s3']);
  expect(await talk.session.queues()).toMatchObject({ steer: [], followUp: [], steeringMode: 'one-at-a-time' });
});

test.each([
  ['one' as const, 'all' as const, [...begun, 'user: s1', 'user: s2'], 2],
  ['all' as const, 'one-at-a-time' as const, [...begun, 'user: s1', 'assistant: A', 'user: s2'], 3],
])('a change of mode counts for messages that wait already (%s to %s)', async (agent, mode, last, turns) => {
  const { talk, runId, send, goOn } = await runInTool(agent, ['A', 'B']);
  await send('steer', 's1', 's2');
  await talk.session.setQueueMode('steer', mode);
  goOn();
  expect(await talk.session.result(runId)).toMatchObject({ turns });
  expect(talk.asked.at(-1)).toEqual(last);
});

test('follow-ups wait until the run would stop, and come one at a time', async () => {
  const { talk, runId, send, goOn } = await runInTool('one', ['A', 'B', 'C']);
  await send('followUp', 'f1', 'f2');
  goOn();
  expect(await talk.session.result(runId)).toMatchObject({ text: 'C' });
  expect(talk.asked.slice(1)).toEqual([
    begun,
    [...begun, 'assistant: A', 'user: f1'],
    [...begun, 'assistant: A', 'user: f1', 'assistant: B', 'user: f2'],
  ]);
});

test('follow-ups in mode all come together, and steering goes first', async () => {
  const { talk, runId, send, goOn } = await runInTool('all', ['A', 'B']);
  await send('followUp', 'f1', 'f2');
  await send('steer', 's1');
  goOn();
  await talk.session.result(runId);
  expect(talk.asked.slice(1)).toEqual([
    [...begun, 'user: s1'],
    [...begun, 'user: s1', 'assistant: A', 'user: f1', 'user: f2'],
  ]);
});

test('messages for the next turn do not open a run, and all of them stand before the next prompt', async () => {
  const talk = harness.talk('one', [{ text: 'Hello' }]);
  talk.accepted.push('n1', 'n2', 'Hi');
  await talk.session.nextTurn('n1');
  await talk.session.nextTurn('n2');
  await talk.session.waitForIdle();
  expect((await talk.session.queues()).nextTurn).toMatchObject([
    { content: [{ text: 'n1' }] },
    { content: [{ text: 'n2' }] },
  ]);
  await talk.session.run('Hi', { runId: 'r1' });
  expect(talk.asked).toEqual([['user: n1', 'user: n2', 'user: Hi']]);
  expect(await talk.events()).toEqual([
    ...['session_open', 'queue [nextTurn: n1]', 'queue [nextTurn: n1, n2]', 'queue []', 'agent_start', 'turn_start'],
    ...['user: n1', 'user: n2', 'user: Hi', 'assistant: Hello', 'turn_end', 'agent_end: done', 'settled'],
  ]);
});

test('a message for the next turn that comes in a run waits, and settled tells of it', async () => {
  const { talk, runId, send, goOn } = await runInTool('one', ['A', 'B']);
  await send('nextTurn', 'n1');
  goOn();
  await talk.session.result(runId);
  expect((await talk.events(runId)).at(-1)).toBe('settled, 1 for the next turn');
  await talk.session.run('P');
  talk.accepted.push('P');
  expect(talk.asked.at(-1)).toEqual([...begun, 'assistant: A', 'user: n1', 'user: P']);
});

test.each(['steer', 'followUp'] as const)('%s to an idle session opens a run', async (queue) => {
  const talk = harness.talk('one', [{ text: 'A' }, { text: 'B' }]);
  talk.accepted.push('one', 'two', 'first');
  await talk.session.nextTurn('first');
  await talk.session[queue]('one');
  await talk.logged((event) => event.type === 'settled', 'the end of the run');
  await talk.session[queue]('two');
  await talk.session.waitForIdle();
  expect(talk.asked).toEqual([
    ['user: first', 'user: one'],
    ['user: first', 'user: one', 'assistant: A', 'user: two'],
  ]);
});

test('steering is polled at the start of a run: after the prompt, in the same turn', async () => {
  // The run ends in an error while a message waits: the next run takes it.
  const talk = harness.talk('one', (request) =>
    request.messages.length === 1 ? { error: '400 bad request', gate: 'model' } : { text: 'Yes' },
  );
  talk.accepted.push('Go', 's1', 'P');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('model');
  await talk.session.steer('s1');
  talk.open('model');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'error' });
  expect((await talk.session.queues()).steer).toHaveLength(1);
  expect(await talk.session.run('P')).toMatchObject({ text: 'Yes', turns: 1 });
  expect(talk.asked.at(-1)?.filter((line) => line.startsWith('user'))).toEqual(['user: Go', 'user: P', 'user: s1']);
});

test('steering with images and with a message object keeps both', async () => {
  const { talk, runId, goOn } = await runInTool('all', ['Done']);
  const image = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png' };
  await talk.session.steer('look', { images: [image] });
  await talk.session.steer({ role: 'user', content: [{ type: 'text', text: 'and this' }], timestamp: 7 });
  goOn();
  await talk.session.result(runId);
  expect(talk.requests[1]?.messages.slice(-2)).toEqual([
    { role: 'user', content: [{ type: 'text', text: 'look' }, image], timestamp: expect.any(Number) },
    { role: 'user', content: [{ type: 'text', text: 'and this' }], timestamp: 7 },
  ]);
});

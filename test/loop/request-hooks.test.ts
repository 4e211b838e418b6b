import { expect, test } from '@jest/globals';
import { type AgentMessage, type Message, textOf } from '../../src/common/messages.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

const note = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 1 });

let calls = 0;
/** What each agent's hook gives, or throws. */
const queued: { steer: AgentMessage[][]; followUp: AgentMessage[][] } = { steer: [], followUp: [] };
const fail = () => {
  calls += 1;
  throw new Error('out of order');
};

const harness: Harness = useHarness({
  agents: () => {
    const tools = loopTools(harness);
    return [
      testAgent('pruning', {
        tools,
        transformContext: async (messages) => [note(`pruned ${messages.length}`), ...messages.slice(-1)],
      }),
      testAgent('in-place', {
        transformContext(messages) {
          messages.splice(0, messages.length, note('spliced'));
          return messages;
        },
      }),
      testAgent('converting', {
        tools,
        transformContext: (messages) => [
          ...messages,
          { role: 'note', text: 'from transform', timestamp: 1 } as unknown as AgentMessage,
        ],
        convertToLlm: (messages) =>
          messages.map(
            (message) =>
              ((message.role as string) === 'note'
                ? note(`NOTE ${(message as unknown as { text: string }).text}`)
                : message) as Message,
          ),
      }),
      testAgent('transform-throws', { transformContext: fail }),
      testAgent('convert-throws', { convertToLlm: fail }),
      testAgent('prompt-throws', { systemPrompt: fail }),
      testAgent('transform-garbage', { transformContext: () => 'all of them' as never }),
      testAgent('convert-garbage', { convertToLlm: () => ({ messages: [] }) as never }),
      testAgent('asking', {
        tools,
        getSteeringMessages: () => queued.steer.shift() ?? [],
        getFollowUpMessages: () => queued.followUp.shift() ?? [],
      }),
      testAgent('steer-throws', { getSteeringMessages: fail }),
      testAgent('follow-throws', { getFollowUpMessages: fail }),
      testAgent('steer-garbage', { getSteeringMessages: () => [{ role: 'assistant', content: [] }] as never }),
      testAgent('slow-follow', {
        getFollowUpMessages: async () => {
          await harness.gates.pass('following');
          return [];
        },
      }),
    ];
  },
});

test('the model gets what transformContext gives; the transcript keeps everything', async () => {
  const talk = harness.talk('pruning', (request) =>
    textOf(request.messages[0] as never) === 'pruned 1' ? { text: 'A' } : { text: 'B' },
  );
  await talk.session.run('one');
  await talk.session.run('two');
  expect(talk.asked).toEqual([
    ['user: pruned 1', 'user: one'],
    ['user: pruned 3', 'user: two'],
  ]);
  expect(await talk.transcript()).toEqual(['user: one', 'assistant: A', 'user: two', 'assistant: B']);
});

test('a transformContext that changes its list in place changes this request alone', async () => {
  const talk = harness.talk('in-place', () => ({ text: 'A' }));
  await talk.session.run('one');
  await talk.session.run('two');
  expect(talk.asked).toEqual([['user: spliced'], ['user: spliced']]);
  expect(await talk.transcript()).toEqual(['user: one', 'assistant: A', 'user: two', 'assistant: A']);
});

test('convertToLlm gets what transformContext gave, own roles included, and its messages are sent', async () => {
  const talk = harness.talk('converting', [{ text: 'A' }]);
  await talk.session.nextTurn({ role: 'note', text: 'from outside' });
  await talk.session.run('Go');
  expect(talk.asked).toEqual([['user: NOTE from outside', 'user: Go', 'user: NOTE from transform']]);
  expect(await talk.transcript()).toEqual(['note: ', 'user: Go', 'assistant: A']);
});

test.each([
  ['transform-throws', 'transformContext', 'out of order'],
  ['convert-throws', 'convertToLlm', 'out of order'],
  ['prompt-throws', 'systemPrompt', 'out of order'],
  ['transform-garbage', 'transformContext', 'list'],
  ['convert-garbage', 'convertToLlm', 'list'],
])('a hook that breaks (%s) ends the run with code hook; the message of the user stays', async (agent, hook, text) => {
  calls = 0;
  const talk = harness.talk(agent, [{ text: 'never' }]);
  talk.accepted.push('Go', 'On');
  await expect(talk.session.run('Go', { runId: 'r1' })).rejects.toMatchObject({
    code: 'hook',
    message: expect.stringMatching(new RegExp(`${hook}.*${text}`)),
    details: { hook },
  });
  if (text === 'out of order') expect(calls).toBe(3);
  expect(await talk.events('r1')).toEqual([
    ...['agent_start', 'turn_start', 'user: Go', 'assistant: ', 'turn_end', 'agent_end: error hook', 'settled'],
  ]);
  const reply = (await talk.raw()).find((event) => event.type === 'turn_end')?.message;
  expect(reply).toMatchObject({ stopReason: 'error', errorMessage: expect.stringContaining(hook) });
  expect(talk.requests).toEqual([]);
  await expect(talk.session.run('On')).rejects.toMatchObject({ code: 'hook' });
  expect((await talk.transcript()).filter((line) => line.startsWith('user'))).toEqual(['user: Go', 'user: On']);
});

test('getSteeringMessages is asked at the start of the run and after each turn, getFollowUpMessages when it would stop', async () => {
  queued.steer = [[note('first')], [note('s1'), note('s2')], [], []];
  queued.followUp = [[note('f1')]];
  const talk = harness.talk('asking', [{ calls: [{ name: 'say' }] }, { text: 'B' }, { text: 'C' }]);
  talk.accepted.push('Go', 'first', 's1', 's2', 'f1');
  await talk.session.run('Go');
  const begun = ['user: Go', 'user: first', 'assistant:  +say', 'result of say: ok', 'user: s1', 'user: s2'];
  expect(talk.asked).toEqual([begun.slice(0, 2), begun, [...begun, 'assistant: B', 'user: f1']]);
});

test('messages from a hook stand after those of the queue', async () => {
  queued.steer = [[], [note('hooked')]];
  queued.followUp = [];
  const talk = harness.talk('asking', [{ calls: [{ name: 'say', args: { at: 'tool' } }] }, { text: 'B' }]);
  talk.accepted.push('Go', 'signalled', 'hooked');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('tool');
  await talk.session.steer('signalled');
  await talk.logged((event) => event.type === 'queue_update', 'the signal');
  talk.open('tool');
  await talk.session.result(runId);
  expect(talk.asked[1]?.slice(-2)).toEqual(['user: signalled', 'user: hooked']);
});

test.each([
  ['steer-throws', 'getSteeringMessages', 0],
  ['steer-garbage', 'getSteeringMessages', 0],
  ['follow-throws', 'getFollowUpMessages', 1],
])(
  'a queue hook that breaks (%s) ends the run with code hook, and every accepted message stays',
  async (agent, hook, requests) => {
    const talk = harness.talk(agent, () => ({ text: 'A', gate: 'model' }));
    talk.accepted.push('Go', 'earlier');
    await talk.session.nextTurn('earlier');
    talk.open('model');
    await expect(talk.session.run('Go', { runId: 'r1' })).rejects.toMatchObject({ code: 'hook', details: { hook } });
    expect(talk.requests).toHaveLength(requests);
    expect((await talk.events('r1')).slice(-3)).toEqual(['turn_end', 'agent_end: error hook', 'settled']);
    expect(await talk.session.status()).toMatchObject({ phase: 'idle' });
  },
);

test('a steer that comes while getFollowUpMessages is asked starts one more turn', async () => {
  const talk = harness.talk('slow-follow', [{ text: 'A' }, { text: 'B' }]);
  talk.accepted.push('Go', 'last minute');
  const { runId } = await talk.session.prompt('Go');
  await harness.gates.reached('following');
  await talk.session.steer('last minute');
  await talk.logged((event) => event.type === 'queue_update', 'the signal');
  harness.gates.open('following');
  expect(await talk.session.result(runId)).toMatchObject({ text: 'B', turns: 2 });
  expect(talk.asked[1]).toEqual(['user: Go', 'assistant: A', 'user: last minute']);
});

import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

const entered = new Entered();
let asked = 0;
const beforeToolCall = () => {
  asked += 1;
  return undefined;
};
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness, entered) }),
    testAgent('gated', { tools: loopTools(harness, entered), beforeToolCall }),
  ],
});

const cut = {
  text: 'Let me',
  calls: [{ name: 'say', args: { text: 'half' } }, { name: 'say' }],
  stopReason: 'length' as const,
};
const told = expect.stringMatching(
  /^result of say \(error\): The call was not executed.*output limit.*Issue the call again/,
);

test.each(['plain', 'gated'])(
  'a reply cut by the output limit executes none of its calls, and the model is asked again (%s)',
  async (agent) => {
    const talk = harness.talk(agent, [cut, { text: 'Done' }]);
    const { runId } = await talk.session.run('Go');
    expect(await talk.events(runId)).toEqual([
      ...['agent_start', 'turn_start', 'user: Go', 'assistant: Let me +say +say'],
      ...[
        'start call-0-0',
        'end call-0-0: truncated',
        told,
        'start call-0-1',
        'end call-0-1: truncated',
        told,
        'turn_end call-0-0 call-0-1',
      ],
      ...['turn_start', 'assistant: Done', 'turn_end', 'agent_end: done', 'settled'],
    ]);
    expect(talk.asked[1]).toEqual(['user: Go', 'assistant: Let me +say +say', told, told]);
    expect(entered.of(talk.sessionId)).toEqual([]);
    expect(asked).toBe(0);
  },
);

test('three such replies in a row end the run with output_limit, and the next prompt goes on', async () => {
  const talk = harness.talk('plain', [cut, cut, cut, { text: 'Sorry' }]);
  const result = await talk.session.run('Go', { runId: 'r1' });
  expect(result).toMatchObject({
    status: 'error',
    turns: 3,
    error: { code: 'output_limit', message: expect.stringContaining('Raise maxTokens') },
  });
  expect(talk.requests).toHaveLength(3);
  expect((await talk.events('r1')).slice(-3)).toEqual([
    'turn_end call-2-0 call-2-1',
    'agent_end: error output_limit',
    'settled',
  ]);
  expect(await talk.session.run('Once more')).toMatchObject({ status: 'done', text: 'Sorry' });
});

test('a reply in between begins the count anew', async () => {
  const talk = harness.talk('plain', [cut, cut, { calls: [{ name: 'say' }] }, cut, cut, { text: 'Done' }]);
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', turns: 6 });
});

test('a reply of text alone that is cut ends the run', async () => {
  const talk = harness.talk('plain', [{ text: 'Once upon', stopReason: 'length' }]);
  expect(await talk.session.run('Go')).toMatchObject({
    status: 'done',
    text: 'Once upon',
    message: { stopReason: 'length' },
  });
});

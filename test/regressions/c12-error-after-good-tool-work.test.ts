import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

// https://github.com/agentarea/agentarea/pull/320: a permanent error of the provider after a tool had run made a retry
// run the tool again.

const entered = new Entered();
const harness: Harness = useHarness({ agents: () => [testAgent('plain', { tools: loopTools(harness, entered) })] });

test('a permanent error after good tool work ends the run; the tool is not executed again, and the user may go on', async () => {
  let healed = false;
  const talk = harness.talk('plain', (request) => {
    if (request.reply === 0) return { calls: [{ name: 'say', args: { text: 'worked' } }] };
    return healed ? { text: 'Fine' } : { error: '400 invalid_request', errorStatus: 400 };
  });
  talk.accepted.push('Go', 'On');
  expect(await talk.session.run('Go', { runId: 'r1' })).toMatchObject({
    status: 'error',
    error: { code: 'model_failed' },
  });
  expect(talk.requests).toHaveLength(2);
  expect((await talk.events('r1')).slice(-5)).toEqual([
    'turn_start',
    'assistant: ',
    'turn_end',
    'agent_end: error model_failed',
    'settled',
  ]);
  healed = true;
  expect(await talk.session.run('On')).toMatchObject({ status: 'done', text: 'Fine' });
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0', 'leave call-0-0']);
});

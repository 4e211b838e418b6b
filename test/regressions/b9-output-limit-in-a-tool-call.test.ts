import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

// https://github.com/earendil-works/pi/pull/6285 and https://github.com/mastra-ai/mastra/issues/15717: a call whose
// arguments were cut by the output limit, but could be parsed, was executed; and a model that kept hitting the limit
// looped for ever.

const entered = new Entered();
const harness: Harness = useHarness({ agents: () => [testAgent('plain', { tools: loopTools(harness, entered) })] });
const cut = { calls: [{ name: 'say', args: { text: 'rm -rf /tm' } }], stopReason: 'length' as const };

test('a cut call with arguments that can be parsed is not executed, and the model is asked to issue it again', async () => {
  const talk = harness.talk('plain', [
    cut,
    { calls: [{ name: 'say', args: { text: 'rm -rf /tmp/x' } }] },
    { text: 'Done' },
  ]);
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', text: 'Done' });
  expect(entered.of(talk.sessionId)).toEqual(['enter call-1-0', 'leave call-1-0']);
  expect(talk.asked[1]?.[2]).toMatch(/not executed.*output limit.*again with complete arguments/);
});

test('three in a row end the run with a clear reason', async () => {
  const talk = harness.talk('plain', () => cut);
  expect(await talk.session.run('Go')).toMatchObject({ status: 'error', turns: 3, error: { code: 'output_limit' } });
  expect(entered.of(talk.sessionId)).toEqual([]);
});

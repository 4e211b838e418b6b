import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

// https://github.com/badlogic/pi-mono/issues/3084: an after-hook that threw for one of three parallel calls broke the
// whole batch.

const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', {
      tools: loopTools(harness),
      afterToolCall({ toolCall, result }) {
        if (toolCall.id === 'b') throw new Error('after broke');
        return { details: { seen: result.content.length } };
      },
    }),
  ],
});

test('an after-hook that throws for one of three parallel calls makes an error of that call, and the turn goes on', async () => {
  const calls = ['a', 'b', 'c'].map((id) => ({ id, name: 'say', args: { text: id } }));
  const talk = harness.talk('plain', [{ calls }, { text: 'Done' }]);
  talk.accepted.push('Go');
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', text: 'Done' });
  expect(talk.asked[1]?.slice(2)).toEqual([
    'result of say: a',
    'result of say (error): after broke',
    'result of say: c',
  ]);
  expect(talk.requests[1]?.messages.slice(2)).toMatchObject([
    { details: { seen: 1 } },
    { details: {} },
    { details: { seen: 1 } },
  ]);
});

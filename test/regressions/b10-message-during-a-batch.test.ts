import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

// https://github.com/earendil-works/pi/issues/8537: a message appended while a tool ran stood between the call and its
// result.

const harness: Harness = useHarness({ agents: () => [testAgent('plain', { tools: loopTools(harness) })] });

test.each([
  ['a message of an own role', { role: 'note', text: 'the door opened' }, 'note: '],
  ['a user message', 'stop soon', 'user: stop soon'],
])('%s that comes during a batch stands after its results, and costs no request more', async (_, message, word) => {
  const talk = harness.talk('plain', [
    { calls: [{ name: 'say', args: { at: 'a' } }, { name: 'say' }] },
    { text: 'Done' },
  ]);
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('a');
  await talk.session.steer(message);
  await talk.logged((event) => event.type === 'queue_update', 'the message');
  talk.open('a');
  expect(await talk.session.result(runId)).toMatchObject({ text: 'Done' });
  expect(await talk.transcript()).toEqual([
    'user: Go',
    'assistant:  +say +say',
    'result of say: ok',
    'result of say: ok',
    word,
    'assistant: Done',
  ]);
  expect(talk.requests).toHaveLength(2);
});

test('settings that change during a batch stand after its results', async () => {
  const talk = harness.talk('plain', [{ calls: [{ name: 'say', args: { at: 'a' } }] }, { text: 'Done' }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('a');
  await talk.session.setThinkingLevel('low');
  talk.open('a');
  await talk.session.result(runId);
  const session = await harness.store.readSession(talk.sessionId);
  const { entries } = await harness.store.readPath(talk.sessionId, session?.leaf ?? '');
  expect(entries.map((entry) => (entry.type === 'message' ? entry.message.role : entry.type))).toEqual([
    'user',
    'assistant',
    'toolResult',
    'thinking_level_change',
    'assistant',
  ]);
});

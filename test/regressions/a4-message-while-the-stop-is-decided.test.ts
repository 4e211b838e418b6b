import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';

// https://github.com/bastani-inc/atomic/pull/2750: a follow-up that came while the stop hook was deciding was lost, or
// was answered in the run that had been stopped.

const harness: Harness = useHarness({ agents: () => [testAgent('deciding')] });

test('a follow-up that comes while shouldStopAfterTurn decides to stop waits, visible, for the next run', async () => {
  const talk = harness.talk('deciding', [{ text: 'STOP' }, { text: 'B' }, { text: 'C' }]);
  talk.accepted.push('Go', 'meanwhile', 'On');
  const { runId } = await talk.session.prompt('Go');
  await talk.logged((event) => event.type === 'message_end' && event.message.role === 'assistant', 'the reply');
  await talk.session.followUp('meanwhile');
  await talk.logged((event) => event.type === 'queue_update', 'the follow-up');
  await talk.workflow.signal('decide');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done', turns: 1 });
  expect(await talk.session.queues()).toMatchObject({ followUp: [{ content: [{ text: 'meanwhile' }] }] });
  expect(talk.requests).toHaveLength(1);
  await talk.session.run('On');
  expect(talk.asked.slice(1)).toEqual([
    ['user: Go', 'assistant: STOP', 'user: On'],
    ['user: Go', 'assistant: STOP', 'user: On', 'assistant: B', 'user: meanwhile'],
  ]);
});

import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

// https://github.com/openclaw/openclaw/issues/128008: a steer that had been taken from the queue was lost by an abort
// before it was written.

let polls = 0;
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', {
      tools: loopTools(harness),
      toolExecution: 'sequential',
      // Asked right after the queue was drained: the steer is out of the queue and not written yet.
      async getSteeringMessages() {
        polls += 1;
        if (polls === 2) await harness.gates.pass('taken');
        return [];
      },
    }),
  ],
});

test('a steer that was taken from the queue when the run is aborted stands in the transcript, before the next prompt', async () => {
  const talk = harness.talk('plain', [
    { calls: [{ name: 'say', args: { at: 'a' } }, { name: 'say' }] },
    { text: 'unused' },
    { text: 'Fine' },
  ]);
  talk.accepted.push('Go', 'S', 'P');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('a');
  await talk.session.steer('S');
  await talk.logged((event) => event.type === 'queue_update', 'S in the queue');
  talk.open('a');
  await harness.gates.reached('taken');
  const aborting = talk.session.abort(runId);
  await talk.logged((event) => event.type === 'queue_update' && event.steer.length === 0, 'the abort');
  harness.gates.open('taken');
  expect(await aborting).toMatchObject({ runId, clearedSteer: [] });
  expect(await talk.session.run('P')).toMatchObject({ status: 'done', text: 'Fine' });
  expect(talk.asked.at(-1)).toEqual([
    ...[
      'user: Go',
      'assistant:  +say +say',
      'result of say: ok',
      'result of say: ok',
      'user: S',
      'assistant: ',
      'user: P',
    ],
  ]);
  expect(await talk.session.queues()).toMatchObject({ steer: [], followUp: [], nextTurn: [] });
});

import { expect, test } from '@jest/globals';
import type { Agent } from '../../src/agent/agent.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';
import { waitFor } from '../support/wait-for.ts';

// https://github.com/openclaw/openclaw/issues/128008: a steer that had been taken from the queue was lost by an abort
// before it was written.

let polls = 0;
let plain: Agent | undefined;
const harness: Harness = useHarness({
  agents: () => {
    plain = testAgent('plain', {
      tools: loopTools(harness),
      toolExecution: 'sequential',
      // A request that follows sees the steer; one that is aborted before it is sent must not take it along.
      async getSteeringMessages() {
        polls += 1;
        if (polls === 2) {
          await harness.gates.pass('taken');
          await waitFor(() => plain?.signal?.aborted, { what: 'the abort' });
        }
        return [];
      },
    });
    return [plain];
  },
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

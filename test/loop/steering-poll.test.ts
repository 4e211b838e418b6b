import { expect, test } from '@jest/globals';
import type { Agent } from '../../src/agent/agent.ts';
import type { Store } from '../../src/store/types.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';
import { waitFor } from '../support/wait-for.ts';

// Where a turn follows anyway, its model effect asks getSteeringMessages.

const inbox: string[] = [];
const take = () =>
  inbox.splice(0).map((text) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }], timestamp: 1 }));
let contextHooks = 0;
const patient: Agent = testAgent('patient', {
  async getSteeringMessages() {
    await harness.gates.pass('poll');
    await waitFor(() => patient.signal?.aborted, { what: 'the abort' });
    return take();
  },
  transformContext: (messages) => {
    contextHooks += 1;
    return messages;
  },
});

/** The first write of what a hook handed out fails, with the run aborted meanwhile. */
let breaking = false;
function breakable(store: Store): Store {
  return {
    ...store,
    async commit(fence, parts) {
      const handedOut = parts.records?.some((record) => record.kind === 'entry' && record.entry.id.includes('/hook/'));
      if (breaking && handedOut) {
        breaking = false;
        await store.requestAbort(fence.sessionId, fence.runId ?? '');
        throw new Error('a defect');
      }
      return store.commit(fence, parts);
    },
  };
}

const harness: Harness = useHarness({
  agents: () => [
    testAgent('asking', { tools: loopTools(harness), getSteeringMessages: take }),
    testAgent('steered', { tools: loopTools(harness), getSteeringMessages: take }),
    patient,
  ],
  wrapStore: breakable,
});

test.each(['asking', 'steered'])(
  'its messages stand before the request, without an activity of their own (%s)',
  async (agent) => {
    inbox.push('at the start');
    const talk = harness.talk(agent, (request) => {
      if (request.reply > 0) return { text: 'Done' };
      inbox.push('in between');
      return { calls: [{ name: 'say' }] };
    });
    talk.accepted.push('Go', 'at the start', 'in between');
    await talk.session.run('Go', { runId: 'r' });
    const begun = ['user: Go', 'user: at the start'];
    expect(talk.asked).toEqual([begun, [...begun, 'assistant:  +say', 'result of say: ok', 'user: in between']]);
    // One for the last poll, which decides whether the run goes on.
    expect((await talk.session.stats('r')).byKind).toMatchObject({ queue: { effects: 1 }, model: { effects: 2 } });
  },
);

test('a message that the hook has handed out is not lost when the run is aborted before it was written', async () => {
  inbox.push('handed out');
  breaking = true;
  const talk = harness.talk('asking', [{ text: 'never' }]);
  talk.accepted.push('Go', 'handed out');
  const { runId } = await talk.session.prompt('Go');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'aborted' });
  expect(await talk.transcript()).toEqual(['user: Go', 'user: handed out', 'assistant: ']);
  expect(talk.requests).toEqual([]);
});

test('an abort while the hook is asked asks no other hook, and keeps what the hook gives', async () => {
  inbox.push('too late');
  const talk = harness.talk('patient', [{ text: 'never' }]);
  talk.accepted.push('Go', 'too late');
  const { runId } = await talk.session.prompt('Go');
  await harness.gates.reached('poll');
  const aborting = talk.session.abort(runId);
  harness.gates.open('poll');
  await aborting;
  expect(await talk.transcript()).toEqual(['user: Go', 'user: too late', 'assistant: ']);
  expect(contextHooks).toBe(0);
});

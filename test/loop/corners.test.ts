import { expect, test } from '@jest/globals';
import { textOf } from '../../src/common/messages.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';

const harness: Harness = useHarness({
  agents: () => [
    testAgent('deaf-hook', {
      async transformContext(messages) {
        const [first] = messages;
        if (messages.length === 1 && first !== undefined) await harness.gates.pass(textOf(first));
        return messages;
      },
    }),
  ],
  worker: { graceMs: 1_500 },
});

test('an abort does not wait for a hook that ignores its signal', async () => {
  const talk = harness.talk('deaf-hook', [{ text: 'A' }]);
  await talk.session.prompt('first', { runId: 'r1' });
  await harness.gates.reached('first');
  await talk.session.abort('r1');
  expect(await talk.session.result('r1')).toMatchObject({ status: 'aborted' });
  expect(harness.requests).toEqual([]);
  harness.gates.open('first');
});

test('an interrupting prompt aborts one that waits to begin: it keeps its place, and the model is not asked', async () => {
  const talk = harness.talk('deaf-hook', () => ({ text: 'A' }));
  await talk.session.prompt('second', { runId: 'r1' });
  await harness.gates.reached('second');
  await talk.session.prompt('two', { runId: 'r2', onBusy: 'interrupt' });
  await talk.session.prompt('three', { runId: 'r3', onBusy: 'interrupt' });
  expect(await talk.session.result('r3')).toMatchObject({ status: 'done', text: 'A' });
  harness.gates.open('second');
  const runs = await harness.store.listRuns(talk.sessionId);
  expect(runs.map(({ runId, status }) => [runId, status])).toEqual([
    ['r1', 'aborted'],
    ['r2', 'aborted'],
    ['r3', 'done'],
  ]);
  const [asked] = talk.requests;
  expect(talk.requests).toHaveLength(1);
  expect(asked?.messages.filter((message) => message.role === 'user')).toHaveLength(3);
});

test('the result of a run that nobody knows is not found', async () => {
  const talk = harness.talk('deaf-hook', () => ({ text: 'A' }));
  harness.gates.open('third');
  await talk.session.run('third');
  await expect(talk.session.result('nobody')).rejects.toMatchObject({ code: 'not_found' });
});

import { expect, test } from '@jest/globals';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness), lingerMs: 1 }),
    testAgent('open', { tools: loopTools(harness), steeringMode: 'all' }),
  ],
});

/** Bytes of the largest payload of the history, and of all. */
async function history(talk: Talk): Promise<{ largest: number; bytes: number; events: number }> {
  const { events } = await talk.workflow.fetchHistory();
  let largest = 0;
  const look = (value: unknown): void => {
    if (value === null || typeof value !== 'object') return;
    if (value instanceof Uint8Array) {
      largest = Math.max(largest, value.length);
      return;
    }
    for (const item of Object.values(value)) look(item);
  };
  look(events);
  const { historySize = 0, historyLength } = await talk.workflow.describe();
  return { largest, bytes: historySize, events: historyLength };
}

test('a prompt of 200 KB and a steer of 300 KB travel by digest, and the model gets them whole', async () => {
  const talk = harness.talk('open', [{ calls: [{ name: 'say', args: { at: 'tool' } }] }, { text: 'B' }]);
  const { runId } = await talk.session.prompt('p'.repeat(200_000));
  await talk.reached('tool');
  await talk.session.steer('s'.repeat(300_000));
  await talk.logged((event) => event.type === 'queue_update', 'the steer');
  talk.open('tool');
  await talk.session.result(runId);
  expect(talk.requests[1]?.messages.map((message) => JSON.stringify(message.content).length > 100_000)).toEqual([
    true,
    false,
    false,
    true,
  ]);
  const { largest, bytes } = await history(talk);
  expect(largest).toBeLessThan(32 * 1024);
  expect(bytes).toBeLessThan(60_000);
});

test('a prompt just under the limit of 8 MiB works', async () => {
  const talk = harness.talk('plain', [{ text: 'Read' }]);
  expect(await talk.session.run('x'.repeat(8 * 1024 * 1024 - 200))).toMatchObject({ text: 'Read' });
  await talk.closed();
  expect((await history(talk)).bytes).toBeLessThan(40_000);
});

test('many messages below the claim check limit do not add up to a task that the server refuses', async () => {
  const talk = harness.talk('open', [{ calls: [{ name: 'say', args: { at: 'tool' } }] }, { text: 'B' }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('tool');
  // 3 MB in all, each one under 32 KiB.
  for (let index = 0; index < 100; index++) await talk.session.steer(`${index} ${'s'.repeat(30_000)}`);
  await talk.logged((event) => event.type === 'queue_update' && event.steer.length === 100, 'all of them');
  talk.open('tool');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done', text: 'B' });
  expect(talk.requests[1]?.messages).toHaveLength(103);
});

test('history grows with turns, not with the conversation', async () => {
  const talk = harness.talk('open', (request) =>
    request.reply < 25
      ? { text: 'x'.repeat(5_000), calls: [{ name: 'say', args: { text: 'y'.repeat(5_000) } }] }
      : { text: 'Done' },
  );
  await talk.session.run('z'.repeat(20_000));
  const { bytes, events } = await history(talk);
  expect(events / 26).toBeLessThan(14);
  expect(bytes / 26).toBeLessThan(5_000);
});

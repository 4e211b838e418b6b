import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

// https://github.com/temporalio/sdk-python/issues/1890: the whole conversation went into the history with every turn, and
// the server ended the workflow.

const harness: Harness = useHarness({ agents: () => [testAgent('plain', { tools: loopTools(harness) })] });

test('100 tool calls on a conversation of 800 KB: history grows with the turns alone', async () => {
  const calls = Array.from({ length: 10 }, () => ({ name: 'say', args: { text: 'r'.repeat(5_000) } }));
  const talk = harness.talk('plain', (request) => (request.reply < 10 ? { calls, chunks: 1 } : { text: 'Done' }));
  expect(await talk.session.run('c'.repeat(800_000))).toMatchObject({ status: 'done', turns: 11 });
  expect(talk.requests.at(-1)?.messages).toHaveLength(1 + 10 * 11);
  const { historyBytes, historyEvents } = await talk.session.stats();
  expect(historyEvents).toBeLessThan(11 * 75);
  expect(historyBytes).toBeLessThan(11 * 20_000);
});

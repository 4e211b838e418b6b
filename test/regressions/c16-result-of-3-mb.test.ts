import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { defineTool } from '../../src/agent/tool.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';

// https://github.com/pydantic/pydantic-ai/pull/7157: a result above the payload limit was retried for ever.
// https://github.com/vm0-ai/vm0/issues/33796: the event at the end of a run carried the whole transcript.

let entries = 0;
const dump = defineTool({
  name: 'dump',
  description: 'dump',
  parameters: z.object({ bytes: z.number() }),
  execute: ({ bytes }) => {
    entries += 1;
    return 'x'.repeat(bytes);
  },
});
const harness: Harness = useHarness({ agents: () => [testAgent('plain', { tools: [dump] })] });

test('a result of 3 MB is one clear error that names the tool, and the tool is entered once', async () => {
  const talk = harness.talk('plain', [{ calls: [{ name: 'dump', args: { bytes: 3_000_000 } }] }, { text: 'Done' }]);
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', text: 'Done' });
  expect(entries).toBe(1);
  expect(talk.asked[1]?.[2]).toMatch(
    /^result of dump \(error\): Tool dump ran and took effect, but its result has \d+ bytes/,
  );
});

test('a result of 900 KB reaches the model whole, and the end of the run does not carry it', async () => {
  const talk = harness.talk('plain', [{ calls: [{ name: 'dump', args: { bytes: 900_000 } }] }, { text: 'Done' }]);
  await talk.session.run('Go');
  expect(JSON.stringify(talk.requests[1]?.messages[2]).length).toBeGreaterThan(900_000);
  const log = await harness.store.readLog(talk.sessionId, 0, 100);
  const sizes = log.map((record) =>
    record.body.kind === 'event' && record.body.event.type !== 'tool_execution_end'
      ? JSON.stringify(record.body).length
      : 0,
  );
  expect(Math.max(...sizes)).toBeLessThan(2_000);
  expect((await talk.session.stats()).historyBytes).toBeLessThan(60_000);
});

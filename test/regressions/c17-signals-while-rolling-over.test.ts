import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';
import { startRollingServer } from '../support/rolling-server.ts';
import { waitFor } from '../support/wait-for.ts';

// https://github.com/temporalio/sdk-dotnet/issues/427 and https://github.com/temporalio/temporal/issues/1289: signals that
// came while a workflow continued as new were lost, or kept it from doing so.

let server: Awaited<ReturnType<typeof startRollingServer>>;

beforeAll(async () => {
  server = await startRollingServer(40);
});

const harness: Harness = useHarness({
  address: () => server.address,
  agents: () => [testAgent('plain', { tools: loopTools(harness), steeringMode: 'all' })],
});

afterAll(() => server.stop());

test('signals that keep coming while the workflow rolls over are all there, once and in order', async () => {
  const filler = { calls: [{ name: 'say' }, { name: 'say' }], chunkDelayMs: 20, chunks: 1 };
  const talk = harness.talk('plain', (request) => (request.reply < 12 ? filler : { text: 'Done' }));
  const epochs = async () => (await talk.raw()).filter((event) => event.type === 'session_open').length;
  const { runId } = await talk.session.prompt('Go');
  const sent: string[] = [];
  while ((await epochs()) < 2 || sent.length < 10) {
    const text = `s${sent.length}`;
    sent.push(text);
    await talk.session.steer(text);
  }
  talk.accepted.push('Go', ...sent);
  await talk.session.result(runId);
  await waitFor(
    async () => (await talk.session.status()).phase === 'idle' && (await talk.session.queues()).steer.length === 0,
    { what: 'idle' },
  );
  const users = (await talk.transcript()).filter((line) => line.startsWith('user'));
  expect(users).toEqual(['Go', ...sent].map((text) => `user: ${text}`));
});

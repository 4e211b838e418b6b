import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';
import { startRollingServer } from '../support/rolling-server.ts';
import { waitFor } from '../support/wait-for.ts';

let server: Awaited<ReturnType<typeof startRollingServer>>;

beforeAll(async () => {
  server = await startRollingServer(60);
});

const entered = new Entered();
const harness: Harness = useHarness({
  address: () => server.address,
  agents: () => [
    testAgent('plain', { tools: loopTools(harness, entered) }),
    testAgent('switching', { tools: loopTools(harness, entered) }),
    testAgent('spied', { tools: loopTools(harness, entered) }),
  ],
});

afterAll(() => server.stop());

/** A batch that fills the history and takes a while: the server holds a continue-as-new back for a second. */
const filler = { calls: Array.from({ length: 8 }, () => ({ name: 'say' })), chunkDelayMs: 20, chunks: 1 };

async function epochs(talk: Talk): Promise<number> {
  return (await talk.raw()).filter((event) => event.type === 'session_open').length;
}

/** As many turns of filler as it takes to have gone over to another workflow run, then what the test says. */
function rolling(...after: { text?: string; calls?: { name: string; args?: Record<string, string> }[] }[]) {
  return [...Array.from({ length: 8 }, () => filler), ...after];
}

test('a run goes on over continue-as-new: each message is asked for and written once', async () => {
  const talk = harness.talk('plain', rolling({ text: 'Done' }));
  talk.accepted.push('Go');
  expect(await talk.session.run('Go', { runId: 'r1' })).toMatchObject({ status: 'done', text: 'Done', turns: 9 });
  expect(await epochs(talk)).toBeGreaterThan(1);
  expect(talk.requests).toHaveLength(9);
  expect(entered.of(talk.sessionId).filter((what) => what.startsWith('enter'))).toHaveLength(64);
  const events = await talk.events('r1');
  expect(events.filter((word) => /^(agent|turn|settled)/.test(word)).map((word) => word.split(' ')[0])).toEqual([
    'agent_start',
    ...Array.from({ length: 9 }, () => ['turn_start', 'turn_end']).flat(),
    'agent_end:',
    'settled',
  ]);
});

test('queued messages of every kind are carried: none lost, none twice, in order', async () => {
  const talk = harness.talk(
    'plain',
    rolling(...Array.from({ length: 20 }, (_, index) => ({ text: `reply ${index}` }))),
  );
  const texts = Array.from({ length: 5 }, (_, index) => index);
  talk.accepted.push('Go', ...texts.flatMap((n) => [`s${n}`, `f${n}`, `n${n}`]), 'P');
  await talk.session.setQueueMode('followUp', 'all');
  const { runId } = await talk.session.prompt('Go');
  for (const n of texts) {
    await talk.session.followUp(`f${n}`);
    await talk.session.nextTurn(`n${n}`);
    await talk.session.steer(`s${n}`);
  }
  await talk.session.result(runId);
  expect(await epochs(talk)).toBeGreaterThan(1);
  expect(await talk.session.queues()).toMatchObject({
    steer: [],
    followUp: [],
    followUpMode: 'all',
    nextTurn: texts.map((n) => ({ content: [{ text: `n${n}` }] })),
  });
  await talk.session.run('P');
  const users = (await talk.transcript()).filter((line) => line.startsWith('user'));
  expect(users).toEqual(
    ['Go', ...texts.map((n) => `s${n}`), ...texts.map((n) => `f${n}`), ...texts.map((n) => `n${n}`), 'P'].map(
      (text) => `user: ${text}`,
    ),
  );
});

test('a policy sees the whole run, and what it has set stays, over continue-as-new', async () => {
  const spied = harness.talk('spied', rolling({ calls: [{ name: 'say' }] }, { text: 'Done' }));
  await spied.session.run('Go');
  expect(await epochs(spied)).toBeGreaterThan(1);
  const seen = JSON.parse(spied.requests.at(-1)?.systemPrompt ?? '') as { newMessages: string[]; context: string[] };
  expect(seen.newMessages).toHaveLength(1 + 8 * 9 + 2);
  expect(seen.newMessages[0]).toBe('user: Go');

  const switching = harness.talk('switching', rolling({ text: 'Done' }));
  await switching.session.run('model');
  expect(await epochs(switching)).toBeGreaterThan(1);
  expect(switching.requests.map(({ model }) => model)).toEqual([
    'scripted/main',
    ...Array.from({ length: 8 }, () => 'scripted/other'),
  ]);
});

test('an idle session with a full history goes over too, and the next prompt goes on', async () => {
  const talk = harness.talk('plain', () => ({ text: 'A' }));
  await talk.session.nextTurn('kept');
  talk.accepted.push('kept', 'Go', 'On');
  for (let index = 0; index < 30; index++) await talk.session.setThinkingLevel(index % 2 === 0 ? 'low' : 'off');
  await talk.session.setQueueMode('steer', 'all');
  await talk.session.run('Go');
  await waitFor(async () => (await epochs(talk)) > 1, { what: 'another epoch', timeoutMs: 5_000 });
  expect(await talk.session.queues()).toMatchObject({ steeringMode: 'all' });
  await talk.session.run('On');
  expect(talk.asked.at(-1)).toEqual(['user: kept', 'user: Go', 'assistant: A', 'user: On']);
});

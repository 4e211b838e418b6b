import { expect, test } from '@jest/globals';
import type { SessionEvent } from '../../../src/common/events.ts';
import { type Harness, type Talk, testAgent, useHarness } from '../../support/harness.ts';
import { loopTools } from '../../support/loop-tools.ts';

// Differences that no scenario meets: what Everturn does where pi has nothing like it.

const prompted: string[] = [];
const harness: Harness = useHarness({
  agents: () => {
    const answering = testAgent('answering');
    answering.on('before_agent_start', () => ({
      messages: [{ role: 'assistant', content: [{ type: 'text', text: 'I said so' }] } as never],
    }));
    const tools = loopTools(harness);
    const systemPrompt = ({ sessionId }: { sessionId: string }) => {
      prompted.push(sessionId);
      return `prompt ${prompted.length}`;
    };
    return [testAgent('plain', { tools }), testAgent('prompting', { tools, systemPrompt }), answering];
  },
});

/** The events of the run as a reader sees it who follows from the beginning. */
async function followed(talk: Talk, runId: string): Promise<SessionEvent[]> {
  const events: SessionEvent[] = [];
  for await (const event of talk.session.events()) {
    events.push(event);
    if (event.type === 'settled' && event.runId === runId) break;
  }
  return events;
}

test('difference 6: a session has no continue, and every run is opened by a message', () => {
  const { session } = harness.talk('plain', []);
  expect(session).not.toHaveProperty('continue');
});

test('difference 32: a function as system prompt is called before each request', async () => {
  const talk = harness.talk('prompting', [{ calls: [{ name: 'say' }] }, { text: 'Done' }]);
  await talk.session.run('Go');
  expect(prompted).toEqual([talk.sessionId, talk.sessionId]);
  expect(talk.requests.map((request) => request.systemPrompt)).toEqual(['prompt 1', 'prompt 2']);
});

test('differences 33, 34 and 42: prompt returns when the run is accepted, and its reply is streamed by deltas to an empty message', async () => {
  const talk = harness.talk('plain', [{ text: 'Hello world', chunks: 2, holdUntilFile: 'hold', holdAfterChunks: 1 }]);
  const { runId } = await talk.session.prompt('Go');
  const reading = followed(talk, runId);
  await talk.held('hold');
  expect(await talk.session.status()).toMatchObject({ phase: 'running' });
  talk.release('hold');
  const own = (await reading).filter((event) => 'entryId' in event && event.entryId === `${runId}/0`);
  expect(own[0]).toMatchObject({ type: 'message_start', message: { content: [], api: '', provider: '', model: '' } });
  const updates = own.filter((event) => event.type === 'message_update');
  expect(updates.every(({ attempt, offset }) => attempt === 1 && offset === undefined)).toBe(true);
  const text = updates.flatMap(({ delta }) => (delta.type === 'text_delta' ? [delta.delta] : []));
  expect(text.join('')).toBe('Hello world');
  expect(own.at(-1)).toMatchObject({ type: 'message_end', message: { content: [{ text: 'Hello world' }] } });
});

test('differences 36 and 40: queued messages are told with the ids of their entries, and ids come from run and turn', async () => {
  const talk = harness.talk('plain', [{ calls: [{ name: 'say', args: { at: 'tool' } }] }, { text: 'Done' }]);
  talk.accepted.push('Go', 'Steer');
  const { runId } = await talk.session.prompt('Go', { runId: 'r' });
  await talk.reached('tool');
  await talk.session.steer('Steer');
  const update = await talk.logged((event) => event.type === 'queue_update' && event.steer.length > 0, 'the steer');
  talk.open('tool');
  await talk.session.result(runId);
  const steer = update.type === 'queue_update' ? update.steer[0] : undefined;
  const ids = (await talk.raw()).flatMap((event) => (event.type === 'message_end' ? [event.entryId] : []));
  expect(ids).toEqual(['r/prompt', 'r/0', 'r/0/0', steer?.id, 'r/1']);
});

test('difference 38: a reader makes save_point and updates of settings, and the first of these has no previous value', async () => {
  const talk = harness.talk('plain', [{ text: 'A' }, { text: 'B' }]);
  await talk.session.run('Go');
  await talk.session.setModel('scripted/other');
  await talk.session.setModel('scripted/main');
  await talk.session.run('And?');
  const events = await talk.raw();
  const updates = events.filter((event) => event.type === 'model_update');
  expect(updates.map(({ previousModel, model }) => [previousModel, model])).toEqual([
    [null, 'scripted/other'],
    ['scripted/other', 'scripted/main'],
  ]);
  const after = events.findIndex((event) => event.type === 'save_point');
  expect(events[after - 1]?.type).toBe('turn_end');
  expect(events.map(({ type }) => type)).not.toContain('resources_update');
});

test('difference 49: a message of before_agent_start must not be one that effects make', async () => {
  const talk = harness.talk('answering', [{ text: 'never' }]);
  talk.accepted.push('Go');
  await expect(talk.session.run('Go')).rejects.toMatchObject({
    code: 'hook',
    details: { hook: 'before_agent_start' },
  });
  expect(talk.requests).toEqual([]);
});

import { expect, test } from '@jest/globals';
import type { SessionEvent } from '../../src/common/events.ts';
import { eventWords } from '../support/event-words.ts';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

// https://github.com/cloudflare/agents/issues/1733 and https://github.com/cloudflare/agents/issues/1784: two readers that
// resumed from one offset got events twice, and one that came before the first token was told that nothing went on.

const harness: Harness = useHarness({ agents: () => [testAgent('plain', { tools: loopTools(harness) })] });

/** Reads to the end of a run. */
async function read(talk: Talk, from: number, live = false): Promise<SessionEvent[]> {
  const seen: SessionEvent[] = [];
  for await (const event of talk.session.events({ from, live })) {
    seen.push(event);
    if (event.type === 'settled') break;
  }
  return seen;
}

test('readers that resume from an offset, before and after the end, get each event once and the same', async () => {
  const talk = harness.talk('plain', [{ text: 'Look', calls: [{ name: 'say', args: { at: 'a' } }] }, { text: 'Done' }]);
  const first = read(talk, 0);
  await talk.session.prompt('Go');
  await talk.reached('a');
  const resumed = [read(talk, 3), read(talk, 3), read(talk, 5)];
  talk.open('a');
  const whole = await first;
  const later = await read(talk, 3);
  const [one, two, three] = await Promise.all(resumed);
  expect(one).toEqual(two);
  expect(one).toEqual(later);
  expect(eventWords(one ?? [])).toEqual(eventWords(whole.filter((event) => (event.offset ?? 0) >= 3)));
  expect(eventWords(three ?? [])).toEqual(eventWords(whole.filter((event) => (event.offset ?? 0) >= 5)));
  const offsets = [...new Set(whole.map((event) => event.offset))];
  expect(offsets).toEqual(offsets.map((_, index) => index));
  expect(whole.filter((event) => event.type === 'message_end').map((event) => event.entryId)).toEqual(
    ['prompt', '0', '0/0', '1'].map((id) => expect.stringMatching(new RegExp(`/${id}$`))),
  );
});

test('a reader that comes between the prompt and the first token sees the run going on, and then every token', async () => {
  const talk = harness.talk('plain', [{ text: 'Hello', holdUntilFile: 'hold' }]);
  await talk.session.prompt('Go');
  await talk.held('hold');
  expect(await talk.session.status()).toMatchObject({ phase: 'running', turn: 0 });
  expect((await talk.raw()).map((event) => event.type)).toEqual([
    'session_open',
    'agent_start',
    'turn_start',
    'message_start',
    'message_end',
  ]);
  const reading = read(talk, 0, true);
  talk.release('hold');
  const seen = await reading;
  const text = seen
    .map((event) => (event.type === 'message_update' && event.delta.type === 'text_delta' ? event.delta.delta : ''))
    .join('');
  expect(text).toBe('Hello');
  expect(seen.filter((event) => event.type === 'message_start' && event.message.role === 'assistant')).toHaveLength(1);
});

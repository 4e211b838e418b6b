import { expect, test } from '@jest/globals';
import type { SessionEvent } from '../../../src/common/events.ts';
import { calls, harness, scenario } from '../build.ts';
import { playOnPi } from '../compare.ts';
import { playBoth } from '../conformance.ts';
import type { Action } from '../scenario.ts';
import { bothSides, eventWords, transcriptWords, useStage } from './both-sides.ts';

const plain = harness();
const gated = harness({ tool_result: 1 });
const stage = useStage(plain, gated);
const steer = (text: string): Action => ({ do: 'steer', text });

/** The log of the session that was played last. */
async function lastPlayed(): Promise<SessionEvent[]> {
  const [last] = await stage().client.sessions({ limit: 1 });
  return Array.fromAsync(
    stage()
      .client.session(last?.sessionId ?? '', { agent: 'any' })
      .events({ follow: false }),
  );
}

test('difference 7: steering an idle session opens a run, and pi refuses it', async () => {
  const script = scenario(plain, { before: [steer('early')], turns: [{}] });
  await expect(playOnPi(script)).rejects.toThrow('Cannot steer while idle');
  const session = stage().client.session(`idle-${process.pid}-${Date.now()}`, {
    agent: 'harness-000000-one-at-a-time-one-at-a-time',
  });
  await session.steer('early');
  const first = await session.events().next();
  expect(first.value).toMatchObject({ type: 'session_open' });
});

test('difference 35: updates of a tool are live alone, and the log gives no order to them', async () => {
  const batch = calls({ updates: 1, result: ['nothing'], inResult: [steer('now')] });
  const { pi, everturn } = await bothSides(stage(), scenario(gated, { turns: [{ calls: batch }, {}] }), [35]);
  const told = (words: string[]) =>
    words.slice(words.indexOf('tool_execution_start c0.0.0') + 1, words.indexOf('tool_execution_end c0.0.0'));
  expect(told(eventWords(pi))).toEqual(['tool_execution_update c0.0.0', 'queue_update']);
  expect(told(eventWords(everturn))).toEqual(['queue_update', 'tool_execution_update c0.0.0']);
  expect((await lastPlayed()).map(({ type }) => type)).not.toContain('tool_execution_update');
});

test('difference 37: the log has events that pi has none of, and says more in some', async () => {
  const script = scenario(gated, {
    turns: [{ calls: calls({ inTool: [{ do: 'setThinkingLevel', level: 'high' }] }) }, {}],
  });
  const pi = await playOnPi(script);
  const { comparison } = await playBoth(stage(), script);
  expect(comparison.difference).toBe('');
  const types = new Set(eventWords(pi).map((word) => word.split(' ')[0]));
  const events = await lastPlayed();
  const more = events.filter(({ type }) => !types.has(type) && !type.startsWith('message_'));
  expect([...new Set(more.map(({ type }) => type))]).toEqual(['session_open', 'hook', 'entry']);
  expect(events.find(({ type }) => type === 'agent_end')).toMatchObject({ status: 'done' });
  expect(events.find(({ type }) => type === 'tool_execution_end')).toMatchObject({ outcome: 'completed' });
});

test('difference 53: a change of settings in a turn is told at the end of the turn, where its entry stands', async () => {
  const change: Action = { do: 'setThinkingLevel', level: 'high' };
  const script = scenario(plain, { turns: [{ calls: calls({ inTool: [change] }) }, {}] });
  const { pi, everturn } = await bothSides(stage(), script, [53]);
  const place = (words: string[]) => words[words.indexOf('thinking_level_update') - 1];
  expect(place(eventWords(pi))).toBe('tool_execution_start c0.0.0');
  expect(place(eventWords(everturn))).toBe('turn_end');
  expect(transcriptWords(everturn)).toEqual(transcriptWords(pi));
});

test('difference 54: after_provider_response stands right before the reply', async () => {
  const { pi, everturn } = await bothSides(stage(), scenario(plain, { turns: [{ inStream: [steer('now')] }] }), [54]);
  expect(eventWords(pi).slice(3, 6)).toEqual(['after_provider_response', 'queue_update', 'assistant']);
  expect(eventWords(everturn).slice(3, 6)).toEqual(['queue_update', 'after_provider_response', 'assistant']);
});

test('difference 55: what waited for a run is told as taken before the run begins', async () => {
  const script = scenario(plain, { turns: [{ stop: 'error', inStream: [steer('left')] }] }, { turns: [{}] });
  const { pi, everturn } = await bothSides(stage(), script, [54, 55]);
  const second = (words: string[]) =>
    words.slice(words.lastIndexOf('agent_start') - 1, words.lastIndexOf('agent_start') + 5);
  expect(second(eventWords(pi))).toEqual(['settled', 'agent_start', 'turn_start', 'user', 'queue_update', 'user']);
  expect(second(eventWords(everturn))).toEqual([
    'queue_update',
    'agent_start',
    'turn_start',
    'user',
    'user',
    'after_provider_response',
  ]);
});

test('differences 56 and 57: the model is told in other words of a cut call and of invalid arguments', async () => {
  const script = scenario(plain, {
    turns: [{ stop: 'length', calls: calls({}) }, { calls: calls({ args: 'invalid' }) }],
  });
  const { pi, everturn } = await bothSides(stage(), script, [56, 57]);
  expect(transcriptWords(pi)[2]).toContain(
    'Tool call "echo" was not executed: the response hit the output token limit',
  );
  expect(transcriptWords(everturn)[2]).toContain('The call was not executed: the output limit cut the message');
  expect(transcriptWords(pi)[4]).toContain('text: must have required properties text');
  expect(transcriptWords(everturn)[4]).toContain('text: missing');
});

import { expect, test } from '@jest/globals';
import { calls, harness, scenario } from '../build.ts';
import { playOnPi } from '../compare.ts';
import type { Action } from '../scenario.ts';
import { bothSides, eventWords, transcriptWords, useStage } from './both-sides.ts';

const plain = harness();
const stage = useStage(plain);
const steer = (text: string): Action => ({ do: 'steer', text });

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

import { expect, test } from '@jest/globals';
import { calls, harness, scenario } from '../build.ts';
import type { StartMove } from '../scenario.ts';
import { bothSides, eventWords, hookWords, transcriptWords, useStage } from './both-sides.ts';

const thrower = harness({ context: 1 });
const starter = harness({ before_agent_start: 1 });
const several = harness({ before_agent_start: 2, context: 2, tool_call: 2, tool_result: 2 });
const requests = harness({ context: 1, before_provider_request: 1 });
const stage = useStage(thrower, starter, several, requests);

const start = (move: Partial<StartMove>): StartMove => ({ messages: [], systemPrompt: false, throws: false, ...move });

test('differences 18 and 39: a hook that throws is named, rejects, and agent_end tells the whole run', async () => {
  const { pi, everturn } = await bothSides(
    stage(),
    scenario(thrower, { turns: [{ context: ['throw'] }] }),
    [18, 39, 51],
  );
  expect(transcriptWords(pi).at(-1)).toBe('assistant error: scripted in context 0.0.0');
  expect(pi.ends).toEqual([{ status: 'error' }]);
  expect(pi.events.find(({ type }) => type === 'agent_end')?.messages).toHaveLength(1);
  expect(transcriptWords(everturn).at(-1)).toBe('assistant error: Hook context failed: scripted in context 0.0.0');
  expect(everturn.ends).toEqual([{ status: 'rejected', thrown: 'Hook context failed: scripted in context 0.0.0' }]);
  expect(everturn.events.find(({ type }) => type === 'agent_end')?.messages).toHaveLength(2);
});

test('differences 9 and 18: a throw of before_agent_start loses neither the prompt nor the messages for the next turn', async () => {
  const before = [{ do: 'nextTurn' as const, text: 'kept' }];
  const script = scenario(starter, { before, start: [start({ throws: true })] });
  const { pi, everturn } = await bothSides(stage(), script, [18, 51]);
  expect(transcriptWords(pi)).toEqual([]);
  expect(eventWords(pi)).toEqual(['queue_update', 'queue_update']);
  expect(transcriptWords(everturn)).toEqual([
    ...['user: kept', 'user: prompt 0'],
    'assistant error: Hook before_agent_start failed: scripted in start 0.0',
  ]);
  expect(eventWords(everturn).slice(-4)).toEqual(['turn_end', 'save_point', 'agent_end', 'settled']);
});

test('difference 43: several handlers combine, where pi takes the last answer', async () => {
  const batch = calls({ gate: ['block', 'pass'] }, { gate: ['nothing', 'nothing'], result: ['content', 'details'] });
  const script = scenario(several, {
    start: [start({ messages: ['user'] }), start({ systemPrompt: true })],
    turns: [{ context: ['add', 'add'], calls: batch }],
  });
  const { pi, everturn } = await bothSides(stage(), script, [43, 44]).catch((error: unknown) => Promise.reject(error));
  expect(transcriptWords(pi)).toEqual([
    ...[
      'user: prompt 0',
      'assistant toolUse: reply 0.0|echo|echo',
      'result c0.0.0: result of c0.0.0',
      'result c0.0.1: result of c0.0.1',
    ],
    'assistant stop: over 0.1',
  ]);
  expect(transcriptWords(everturn)).toEqual([
    ...['user: prompt 0', 'user: start 0.0 0', 'assistant toolUse: reply 0.0|echo|echo'],
    ...['result c0.0.0: no: tool_call c0.0.0.0', 'result c0.0.1: tool_result c0.0.1.0', 'assistant stop: over 0.1'],
  ]);
  expect([pi.requests[0]?.messages.length, everturn.requests[0]?.messages.length]).toEqual([2, 4]);
});

test('difference 44: a system prompt of before_agent_start holds for the whole run', async () => {
  const script = scenario(
    starter,
    { start: [start({ systemPrompt: true })], turns: [{ calls: calls({}) }, {}] },
    { turns: [{}] },
  );
  const { pi, everturn } = await bothSides(stage(), script, [44]);
  const [plain, changed] = ['You play a part.', 'You play a part. (start 0.0)'];
  expect(pi.requests.map(({ systemPrompt }) => systemPrompt)).toEqual([changed, plain, plain]);
  expect(everturn.requests.map(({ systemPrompt }) => systemPrompt)).toEqual([changed, changed, plain]);
});

test('difference 45: before_provider_request comes before context', async () => {
  const { pi, everturn } = await bothSides(stage(), scenario(requests, { turns: [{}] }), [45]);
  expect(hookWords(pi)).toEqual(['context', 'before_provider_request']);
  expect(hookWords(everturn)).toEqual(['before_provider_request', 'context']);
});

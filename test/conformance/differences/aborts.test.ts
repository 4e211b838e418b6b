import { expect, test } from '@jest/globals';
import { calls, harness, scenario } from '../build.ts';
import { bothSides, eventWords, hookWords, transcriptWords, useStage } from './both-sides.ts';

const plain = harness();
const watched = harness({ context: 1, before_provider_request: 1, before_provider_payload: 1 });
const gated = harness({ tool_call: 1, tool_result: 1 });
const stage = useStage(plain, watched, gated);
const abort = { do: 'abort' as const };

test('difference 12: calls that an abort kept from starting have a start, an end and a result', async () => {
  const batch = calls({ tool: 'one_by_one', inTool: [abort] }, {}, {});
  const { pi, everturn } = await bothSides(stage(), scenario(plain, { turns: [{ calls: batch }] }), [12, 51]);
  expect(transcriptWords(pi).slice(2)).toEqual([
    'result c0.0.0: Operation aborted',
    'assistant aborted: Request was aborted',
  ]);
  expect(transcriptWords(everturn).slice(2)).toEqual([
    ...['result c0.0.0: Operation aborted', 'result c0.0.1: Operation aborted', 'result c0.0.2: Operation aborted'],
    'assistant aborted: Request was aborted',
  ]);
  expect(eventWords(pi)).not.toContain('tool_execution_start c0.0.1');
  expect(eventWords(everturn)).toEqual(
    expect.arrayContaining(['tool_execution_start c0.0.1', 'tool_execution_end c0.0.1']),
  );
});

test('difference 12: what passed its gate before an abort in the next gate is not entered, and has no result hook', async () => {
  const batch = calls({}, { inGate: [abort] }, {});
  const { pi, everturn } = await bothSides(stage(), scenario(gated, { turns: [{ calls: batch }] }), [12, 51]);
  expect(hookWords(pi)).toEqual(['tool_call c0.0.0', 'tool_call c0.0.1', 'tool_result c0.0.0']);
  expect(hookWords(everturn)).toEqual(['tool_call c0.0.0', 'tool_call c0.0.1']);
});

test('differences 51 and 52: after an abort no hook is asked, and the reply that nobody made says so by its API', async () => {
  const script = scenario(watched, { turns: [{ calls: calls({ inTool: [abort] }) }] });
  const { pi, everturn } = await bothSides(stage(), script, [45, 51, 52]);
  const first = ['before_provider_request', 'context', 'before_provider_payload', 'execute c0.0.0'];
  expect(hookWords(pi)).toEqual([
    'context',
    'before_provider_request',
    'before_provider_payload',
    'execute c0.0.0',
    'context',
    'before_provider_request',
  ]);
  expect(hookWords(everturn)).toEqual(first);
  expect(everturn.transcript.at(-1)?.message).toMatchObject({
    api: 'everturn',
    stopReason: 'aborted',
    content: [{ type: 'text', text: '' }],
  });
  expect(pi.transcript.at(-1)?.message).toMatchObject({ api: 'played', stopReason: 'aborted', content: [] });
});

test('difference 58: a gate that throws once its run is aborted leaves an aborted call, not a failed one', async () => {
  const script = scenario(gated, { turns: [{ calls: calls({ inGate: [abort], gate: ['throw'] }) }] });
  const { pi, everturn } = await bothSides(stage(), script, [51, 58]);
  expect(transcriptWords(pi)[2]).toBe('result c0.0.0: scripted in tool_call c0.0.0.0');
  expect(transcriptWords(everturn)[2]).toBe('result c0.0.0: Operation aborted');
});

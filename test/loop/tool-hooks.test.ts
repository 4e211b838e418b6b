import { expect, test } from '@jest/globals';
import type {
  AfterToolCallContext,
  AfterToolCallResult,
  BeforeToolCallContext,
  BeforeToolCallResult,
} from '../../src/hooks/types.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';
import { words } from '../support/transcript.ts';

type Before = (context: BeforeToolCallContext, signal?: AbortSignal) => Promise<BeforeToolCallResult | undefined>;
type After = (context: AfterToolCallContext, signal?: AbortSignal) => Promise<AfterToolCallResult | undefined>;

/** What the hooks do, by the text argument of the call. */
const befores = new Map<string, Before>();
const afters = new Map<string, After>();
const asked: string[] = [];

const textOfCall = ({ toolCall }: { toolCall: { arguments: object } }) =>
  (toolCall.arguments as { text?: string }).text ?? '';
const entered = new Entered();
const before: Before = async (context, signal) => {
  asked.push(`before ${context.toolCall.id}`);
  return befores.get(textOfCall(context))?.(context, signal);
};
const after: After = async (context, signal) => {
  asked.push(`after ${context.toolCall.id}`);
  return afters.get(textOfCall(context))?.(context, signal);
};
const harness: Harness = useHarness({
  agents: () => [
    testAgent('hooked', { tools: loopTools(harness, entered), beforeToolCall: before, afterToolCall: after }),
    testAgent('hooked-sequential', {
      tools: loopTools(harness, entered),
      beforeToolCall: before,
      afterToolCall: after,
      toolExecution: 'sequential',
    }),
  ],
  worker: { graceMs: 100 },
});

/** Runs one batch: of each call its id, which tool, and the text by which the hooks know it. */
async function batch(agent: string, calls: { id: string; name?: string; text: string; at?: string }[]) {
  asked.length = 0;
  const talk = harness.talk(agent, [
    {
      calls: calls.map(({ id, name = 'say', text, at }) => ({
        id,
        name,
        args: { text, ...(at === undefined ? {} : { at }) },
      })),
    },
    { text: 'Done' },
  ]);
  const { runId } = await talk.session.prompt('Go');
  const results = async () => {
    await talk.session.result(runId);
    return talk.asked[1]?.slice(2);
  };
  return { talk, runId, results };
}

test('beforeToolCall sees the reply, the raw call, the validated arguments and the transcript', async () => {
  let seen: BeforeToolCallContext | undefined;
  befores.set('look', async (context) => {
    seen = structuredClone(context);
    return undefined;
  });
  const { results } = await batch('hooked', [{ id: 'a', text: 'look' }]);
  expect(await results()).toEqual(['result of say: look']);
  expect(seen).toMatchObject({
    toolCall: { type: 'toolCall', id: 'a', name: 'say', arguments: { text: 'look' } },
    args: { text: 'look' },
    assistantMessage: { role: 'assistant', stopReason: 'toolUse' },
    context: { systemPrompt: 'You are under test.' },
  });
  expect(words(seen?.context.messages ?? [])).toEqual(['user: Go', 'assistant:  +say']);
  expect(seen?.context.tools?.map((tool) => tool.name)).toEqual(['say', 'one_by_one', 'stubborn', 'stop', 'fail']);
});

test('blocked calls are errors with the reason or a default, and never reach the tool or afterToolCall', async () => {
  befores.set('with reason', async () => ({ block: true, reason: 'not on Sundays' }));
  befores.set('without', async () => ({ block: true }));
  befores.set('empty', async () => ({ block: true, reason: '' }));
  befores.set('no block', async () => ({ block: false, reason: 'ignored' }));
  const { talk, results } = await batch(
    'hooked',
    ['with reason', 'without', 'empty', 'no block'].map((text, index) => ({ id: `c${index}`, text })),
  );
  expect(await results()).toEqual([
    'result of say (error): not on Sundays',
    'result of say (error): Tool execution was blocked',
    'result of say (error): Tool execution was blocked',
    'result of say: no block',
  ]);
  expect(entered.of(talk.sessionId)).toEqual(['enter c3', 'leave c3']);
  expect(asked).toEqual(['before c0', 'before c1', 'before c2', 'before c3', 'after c3']);
  const ends = (await talk.raw()).filter((event) => event.type === 'tool_execution_end');
  expect(ends[0]).toMatchObject({ toolCallId: 'c0', outcome: 'blocked', isError: true, result: { details: {} } });
});

test('a beforeToolCall that throws, three times, is an error result with its text', async () => {
  befores.set('boom', async () => Promise.reject(new Error('the gate is broken')));
  befores.set('text', () => Promise.reject('only a text'));
  const { talk, results } = await batch('hooked', [
    { id: 'a', text: 'boom' },
    { id: 'b', text: 'fine' },
    { id: 'c', text: 'text' },
  ]);
  expect(await results()).toEqual([
    'result of say (error): the gate is broken',
    'result of say: fine',
    'result of say (error): only a text',
  ]);
  expect(asked.filter((what) => what === 'before a')).toHaveLength(3);
  expect(entered.of(talk.sessionId)).toEqual(['enter b', 'leave b']);
});

test('arguments that beforeToolCall changes in place are what the tool and afterToolCall get; the transcript keeps the call', async () => {
  let seen: unknown;
  befores.set('secret', async ({ args }) => {
    Object.assign(args as object, { text: 'changed' });
    return undefined;
  });
  afters.set('secret', async ({ args }) => {
    seen = args;
    return undefined;
  });
  const { talk, results } = await batch('hooked', [{ id: 'a', text: 'secret' }]);
  expect(await results()).toEqual(['result of say: changed']);
  expect(seen).toEqual({ text: 'changed' });
  expect((await talk.raw()).find((event) => event.type === 'tool_execution_start')).toMatchObject({
    args: { text: 'secret' },
  });
});

test('parallel: every gate in source order before any tool starts', async () => {
  const order: string[] = [];
  for (const text of ['p', 'q']) {
    befores.set(text, async () => {
      order.push(`gate ${text}, ${entered.of(talkOf.id).length} entered`);
      return text === 'q' ? { block: true, reason: 'no' } : undefined;
    });
  }
  const talkOf = { id: '' };
  const { talk, runId, results } = await batch('hooked', [
    { id: 'a', text: 'p' },
    { id: 'x', name: 'nobody', text: '' },
    { id: 'b', text: 'q' },
    { id: 'c', text: 'p' },
  ]);
  talkOf.id = talk.sessionId;
  await results();
  expect(order).toEqual(['gate p, 0 entered', 'gate q, 0 entered', 'gate p, 0 entered']);
  expect((await talk.events(runId)).slice(4, 12)).toEqual([
    ...['start a', 'start x', 'end x: not_found', 'start b', 'end b: blocked', 'start c'],
    ...[expect.stringMatching(/^end [ac]: completed$/), expect.stringMatching(/^end [ac]: completed$/)],
  ]);
});

test('sequential: gate and tool, call by call', async () => {
  befores.set('q', async () => ({ block: true, reason: 'no' }));
  const { talk, runId, results } = await batch('hooked-sequential', [
    { id: 'a', text: 'x' },
    { id: 'b', text: 'q' },
    { id: 'n', name: 'nobody', text: '' },
    { id: 'c', text: 'y' },
  ]);
  await results();
  expect(asked).toEqual(['before a', 'after a', 'before b', 'before c', 'after c']);
  expect((await talk.events(runId)).slice(4, -5)).toEqual([
    ...['start a', 'end a: completed', 'result of say: x', 'start b', 'end b: blocked', 'result of say (error): no'],
    ...[
      'start n',
      'end n: not_found',
      'result of nobody (error): Tool nobody not found',
      'start c',
      'end c: completed',
      'result of say: y',
    ],
    'turn_end a b n c',
  ]);
});

test('an abort inside a gate wins over its word: nothing starts, and every call has its result', async () => {
  let signalled = false;
  befores.set('wait', async (_context, signal) => {
    await harness.gates.pass('in-gate', signal).catch(() => {
      signalled = true;
    });
    return { block: true, reason: 'too late' };
  });
  const { talk, runId } = await batch('hooked', [
    { id: 'a', text: 'fine' },
    { id: 'b', text: 'wait' },
    { id: 'c', text: 'fine' },
  ]);
  await harness.gates.reached('in-gate');
  await talk.session.abort();
  expect(signalled).toBe(true);
  expect(entered.of(talk.sessionId)).toEqual([]);
  expect(asked).toEqual(['before a', 'before b']);
  const aborted = 'result of say (error): Operation aborted';
  const events = (await talk.events(runId)).filter((word) => word !== 'queue []');
  expect(events.filter((word) => /^(start|end) /.test(word)).toSorted()).toEqual(
    ['a', 'b', 'c'].flatMap((id) => [`end ${id}: aborted`, `start ${id}`]).toSorted(),
  );
  expect(events.slice(-10)).toEqual([
    ...[aborted, aborted, aborted, 'turn_end a b c'],
    ...['turn_start', 'assistant: ', 'turn_end', 'agent_end: aborted', 'settled', 'abort queue []'],
  ]);
});

test('afterToolCall changes each field by itself, and keeps those it gives as null or not at all', async () => {
  afters.set('content', async () => ({ content: [{ type: 'text', text: 'redacted' }] }));
  afters.set('details', async () => ({ details: { only: 'this' } }));
  afters.set('isError', async () => ({ isError: true }));
  afters.set(
    'nulls',
    async () => ({ content: null, details: null, isError: null, usage: null, terminate: null }) as never,
  );
  afters.set('nothing', async () => undefined);
  const texts = ['content', 'details', 'isError', 'nulls', 'nothing'];
  const { talk, results } = await batch(
    'hooked',
    texts.map((text) => ({ id: text, text })),
  );
  expect(await results()).toEqual([
    'result of say: redacted',
    'result of say: details',
    'result of say (error): isError',
    'result of say: nulls',
    'result of say: nothing',
  ]);
  const ends = (await talk.raw()).filter((event) => event.type === 'tool_execution_end');
  expect(ends.find((end) => end.toolCallId === 'details')).toMatchObject({
    result: { details: { only: 'this' } },
    isError: false,
  });
  expect(ends.find((end) => end.toolCallId === 'nulls')).toMatchObject({ result: { details: {} }, isError: false });
});

test('afterToolCall sees a failed execution, and may make it good', async () => {
  let seen: Partial<AfterToolCallContext> = {};
  afters.set('broken', async ({ result, isError }) => {
    seen = { result, isError };
    return { content: [{ type: 'text', text: 'never mind' }], isError: false };
  });
  const { results } = await batch('hooked', [{ id: 'a', name: 'fail', text: 'broken' }]);
  expect(await results()).toEqual(['result of fail: never mind']);
  expect(seen).toEqual({ result: { content: [{ type: 'text', text: 'broken' }], details: {} }, isError: true });
});

test('terminate from afterToolCall ends the run, or keeps it going', async () => {
  afters.set('end it', async () => ({ terminate: true }));
  afters.set('go on', async () => ({ terminate: false }));
  const ending = await batch('hooked', [{ id: 'a', text: 'end it' }]);
  expect(await ending.talk.session.result(ending.runId)).toMatchObject({ status: 'done', turns: 1 });
  const going = await batch('hooked', [{ id: 'a', name: 'stop', text: 'go on' }]);
  expect(await going.talk.session.result(going.runId)).toMatchObject({ status: 'done', turns: 2 });
});

test('usage from afterToolCall counts for the run', async () => {
  const usage = {
    input: 1000,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 1000,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 3 },
  };
  afters.set('costly', async () => ({ usage }));
  const { talk, runId } = await batch('hooked', [{ id: 'a', text: 'costly' }]);
  expect((await talk.session.result(runId)).usage).toMatchObject({ cost: 3 });
  expect(talk.requests[1]?.messages[2]).toMatchObject({ usage });
});

test('an afterToolCall that throws makes an error of its call alone', async () => {
  afters.set('after boom', async () => Promise.reject(new Error('after is broken')));
  const { results } = await batch('hooked', [
    { id: 'a', text: 'one' },
    { id: 'b', text: 'after boom' },
    { id: 'c', text: 'three' },
  ]);
  expect(await results()).toEqual([
    'result of say: one',
    'result of say (error): after is broken',
    'result of say: three',
  ]);
});

test.each([
  ['a text for content', { content: 'text' }],
  ['content blocks of an unknown type', { content: [{ type: 'video' }] }],
  ['3 MB', { content: [{ type: 'text', text: 'x'.repeat(3_000_000) }] }],
])('an afterToolCall that returns %s makes an error of its call', async (_, change) => {
  afters.set('garbage', async () => change as never);
  const { results } = await batch('hooked', [{ id: 'a', text: 'garbage' }]);
  expect(await results()).toEqual([expect.stringMatching(/^result of say \(error\): .{10,400}$/s)]);
});

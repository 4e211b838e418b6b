import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { defineTool, RetryableToolError, type ToolContext } from '../../src/agent/tool.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';

const got: unknown[] = [];
const contexts: ToolContext[] = [];
let tries = 0;

const empty = z.object({});
const make = (name: string, execute: () => unknown, options: object = {}) =>
  defineTool({ name, description: name, parameters: empty, execute: execute as never, ...options });

const tools = [
  defineTool({
    name: 'typed',
    description: 'typed',
    parameters: z.object({
      count: z.number().int().max(10),
      on: z.boolean().default(true),
      deep: z.object({ tags: z.array(z.string()) }).optional(),
    }),
    execute: (args, context) => {
      got.push(args);
      contexts.push(context);
      return 'typed';
    },
  }),
  defineTool({
    name: 'prepared',
    description: 'prepared',
    parameters: z.object({ path: z.string() }),
    prepareArguments: (raw) => {
      if (raw.explode) throw new Error('no way to prepare this');
      return { path: raw.file };
    },
    execute: ({ path }) => path,
  }),
  make('throws_error', () => {
    throw new Error('the disk is on fire');
  }),
  make('throws_text', () => {
    throw 'just a text';
  }),
  make('says_error', () => ({ content: [{ type: 'text', text: 'not this time' }], isError: true })),
  make('full', () => ({
    content: [
      { type: 'text', text: 'see' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
    ],
    details: { rows: 3, skip: undefined },
  })),
  make('flaky', () => {
    tries += 1;
    if (tries < 3) throw new RetryableToolError(`try ${tries}`, { delayMs: 5 });
    return `worked at try ${tries}`;
  }),
  make('never_well', () => {
    throw new RetryableToolError('still no', { delayMs: 5 });
  }),
  make('slow', () => new Promise(() => {}), { timeoutMs: 50 }),
  defineTool({
    name: 'slow_but_kind',
    description: 'slow',
    parameters: empty,
    timeoutMs: 50,
    execute: (_args, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('I stopped')))),
  }),
  make('nothing', () => undefined),
  make('number', () => 42),
  make('wrong_block', () => ({ content: [{ type: 'video' }] })),
  make('wrong_content', () => ({ content: 'text' })),
  make('bigint', () => ({ content: [], details: { id: 1n } })),
  make('huge', () => 'x'.repeat(3 * 1024 * 1024)),
  make('local', () => 'from near', { replay: 'safe', local: true }),
];

const harness: Harness = useHarness({ agents: () => [testAgent('typed', { tools })], worker: { graceMs: 100 } });

/** One call of a tool: what the model was told, and how the call ended. */
async function call(
  name: string,
  args: Record<string, unknown> = {},
): Promise<{ told: string; outcome: string; isError: boolean }> {
  const talk = harness.talk('typed', [{ calls: [{ name, args: args as never }] }, { text: 'Done' }]);
  const result = await talk.session.run('Go');
  expect(result).toMatchObject({ status: 'done', text: 'Done' });
  const end = (await talk.raw()).find((event) => event.type === 'tool_execution_end');
  const { outcome = '', isError = false } = end ?? {};
  const told = talk.asked[1]?.[2] ?? '';
  return { told: told.slice(told.indexOf(': ') + 2), outcome, isError };
}

test('arguments are coerced and get their defaults', async () => {
  expect(await call('typed', { count: '5', deep: { tags: ['a', 7] } })).toEqual({
    told: 'typed',
    outcome: 'completed',
    isError: false,
  });
  expect(got.at(-1)).toEqual({ count: 5, on: true, deep: { tags: ['a', '7'] } });
  expect(contexts.at(-1)).toMatchObject({
    toolCallId: 'call-0-0',
    attempt: 1,
    idempotencyKey: expect.stringContaining('/0/0'),
    signal: { aborted: false },
  });
});

test('invalid arguments are told with path, reason and what was received', async () => {
  const before = got.length;
  const { told, ...end } = await call('typed', { count: 50, on: 'perhaps' });
  expect(end).toEqual({ outcome: 'invalid_arguments', isError: true });
  expect(told).toMatch(/^Validation failed for tool "typed":\n {2}- /);
  expect(told).toContain('count');
  expect(told).toContain('Received arguments:\n{\n  "count": 50');
  expect(got).toHaveLength(before);
});

test('prepareArguments changes the raw arguments before they are validated; its throw is a result', async () => {
  expect(await call('prepared', { file: '/tmp/a' })).toEqual({ told: '/tmp/a', outcome: 'completed', isError: false });
  expect(await call('prepared', { explode: true })).toEqual({
    told: 'no way to prepare this',
    outcome: 'invalid_arguments',
    isError: true,
  });
});

test.each([
  ['throws_error', 'the disk is on fire'],
  ['throws_text', 'just a text'],
  ['says_error', 'not this time'],
  ['never_well', 'still no'],
])('a tool that fails (%s) gives the model its error', async (name, told) => {
  expect(await call(name)).toEqual({ told, outcome: 'failed', isError: true });
});

test('a RetryableToolError enters the tool again, three times in all', async () => {
  expect(await call('flaky')).toEqual({ told: 'worked at try 3', outcome: 'completed', isError: false });
});

test('a tool that ignores its timeout is left behind with an unknown outcome', async () => {
  expect(await call('slow')).toEqual({
    told: 'Tool slow timed out after 50 ms, outcome unknown: the tool did not stop.',
    outcome: 'failed',
    isError: true,
  });
});

test('a tool that stops at its timeout fails', async () => {
  expect(await call('slow_but_kind')).toEqual({
    told: expect.stringContaining('I stopped'),
    outcome: 'failed',
    isError: true,
  });
});

test.each(['nothing', 'number', 'wrong_block', 'wrong_content', 'bigint'])(
  'a result of the wrong shape (%s) is an error that says so',
  async (name) => {
    const { told, ...end } = await call(name);
    expect(end).toEqual({ outcome: 'failed', isError: true });
    expect(told).toMatch(new RegExp(`^Tool ${name} ran, but .*(wrong shape|cannot be stored)`));
  },
);

test('a result of 3 MB is an error that names the tool and the limit, and history stays small', async () => {
  const { told, ...end } = await call('huge');
  expect(end).toEqual({ outcome: 'failed', isError: true });
  expect(told).toMatch(/^Tool huge ran and took effect, but its result has 31457\d\d bytes and the limit is 1048576/);
});

test('content and details of a result are kept, images included', async () => {
  const talk = harness.talk('typed', [{ calls: [{ name: 'full' }] }, { text: 'Done' }]);
  await talk.session.run('Go');
  const content = [
    { type: 'text', text: 'see' },
    { type: 'image', data: 'aGk=', mimeType: 'image/png' },
  ];
  expect(talk.requests[1]?.messages[2]).toMatchObject({
    role: 'toolResult',
    content,
    details: { rows: 3 },
    isError: false,
  });
  expect((await talk.raw()).find((event) => event.type === 'tool_execution_end')).toMatchObject({
    result: { content, details: { rows: 3 } },
  });
});

test('a local tool runs without an activity of the task queue', async () => {
  expect(await call('local')).toEqual({ told: 'from near', outcome: 'completed', isError: false });
});

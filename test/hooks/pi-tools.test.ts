import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createBashTool,
  createEditTool,
  createReadTool,
  createWriteTool,
  NodeExecutionEnv,
} from '@earendil-works/pi-agent-core/node';
import * as codingAgent from '@earendil-works/pi-coding-agent';
import { afterAll, describe, expect, test } from '@jest/globals';
import { fromPiTool, type PiAgentTool } from '../../src/agent/pi-tool.ts';
import type { Tool } from '../../src/agent/tool.ts';
import type { SessionEvent } from '../../src/common/events.ts';
import { textOf } from '../../src/common/messages.ts';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { waitFor } from '../support/wait-for.ts';

// Tools made for pi, unchanged, on real files: those of pi-agent-core 0.83's harness, and those of pi-coding-agent 1.6.

const workspace = mkdtempSync(join(tmpdir(), 'everturn-test-'));
afterAll(() => rmSync(workspace, { recursive: true, force: true }));
const folder = (name: string) => {
  const path = join(workspace, name);
  mkdirSync(path, { recursive: true });
  return path;
};

type CreateTool = (cwd: string) => PiAgentTool;

const coding = codingAgent as unknown as Record<string, CreateTool>;
const names = ['Read', 'Bash', 'Edit', 'Write', 'Grep', 'Find', 'Ls'];
const harnessTools = [createReadTool(), createBashTool(), createEditTool(), createWriteTool()].map((tool) =>
  fromPiTool(tool, { toolContext: () => ({ env: new NodeExecutionEnv({ cwd: folder('0.83') }) }) }),
);
const codingTools: Tool[] = names.flatMap((name) => {
  const create = coding[`create${name}Tool`];
  return create === undefined ? [] : [fromPiTool(create(folder('1.6')), name === 'Read' ? { replay: 'safe' } : {})];
});

const received: unknown[] = [];
const own = (tool: Partial<PiAgentTool>, options = {}) =>
  fromPiTool(
    { name: 'own', description: 'own', parameters: {}, execute: async () => ({ content: [], details: {} }), ...tool },
    options,
  );
const answer = (text: string, more: object = {}) => ({ content: [{ type: 'text', text }], details: {}, ...more });
const handmade = [
  own({
    name: 'typed',
    parameters: {
      type: 'object',
      required: ['count'],
      properties: { count: { type: 'number' }, tags: { type: 'array', items: { type: 'string' } } },
    },
    prepareArguments: (raw: { amount?: unknown }) => ('amount' in raw ? { count: raw.amount } : raw),
    async execute(...args) {
      received.push(args.slice(0, 2));
      return answer('typed', { structuredContent: 'x'.repeat(2_000_000), addedToolNames: ['more'] });
    },
  }),
  own({
    name: 'streaming',
    async execute(_id, _args, _signal, onUpdate) {
      onUpdate?.(answer('half'));
      setImmediate(() => onUpdate?.(answer('too late')));
      return answer('whole', { terminate: true });
    },
  }),
  own({ name: 'failing', execute: async () => answer('not well', { isError: true, details: { code: 3 } }) }),
  own({ name: 'throwing', execute: () => Promise.reject(new Error('broken')) }),
];

const harness: Harness = useHarness({
  agents: () => [
    testAgent('pi-0.83', { tools: harnessTools }),
    testAgent('pi-1.6', { tools: codingTools }),
    testAgent('pi-own', { tools: handmade }),
  ],
  worker: { graceMs: 2_000 },
});

/** Calls tools one after the other: what the model is told of each. */
async function use(agent: string, ...calls: [name: string, args: object][]): Promise<{ told: string[]; talk: Talk }> {
  const talk = harness.talk(agent, [
    ...calls.map(([name, args]) => ({ calls: [{ name, args: args as never }] })),
    { text: 'Done' },
  ]);
  await talk.session.run('Go', { runId: 'r' });
  const last = talk.requests.at(-1)?.messages ?? [];
  return {
    talk,
    told: last.flatMap((message) =>
      message.role === 'toolResult' ? [`${message.isError ? '! ' : ''}${textOf(message)}`] : [],
    ),
  };
}

const sets: [string, string][] = [
  ['pi-0.83', '0.83'],
  ['pi-1.6', '1.6'],
];

describe.each(sets)('the tools of %s', (agent, cwd) => {
  test('write, read and edit real files', async () => {
    // It must be there: in jest's realm fs errors are no instances of Error, by which 0.83 knows a missing file.
    mkdirSync(join(folder(cwd), 'notes'), { recursive: true });
    writeFileSync(join(folder(cwd), 'notes/a.txt'), 'old');
    const { told, talk } = await use(
      agent,
      ['write', { path: 'notes/a.txt', content: 'one\ntwo\nthree\n' }],
      ['edit', { path: 'notes/a.txt', edits: [{ oldText: 'two', newText: '2' }] }],
      ['read', { path: 'notes/a.txt', offset: '2', limit: 1 }],
      ['edit', { path: 'notes/a.txt', edits: [{ oldText: 'nowhere', newText: 'x' }] }],
      ['read', {}],
    );
    expect(readFileSync(join(folder(cwd), 'notes/a.txt'), 'utf8')).toBe('one\n2\nthree\n');
    expect(told[0]).toContain('notes/a.txt');
    expect(told[2]).toMatch(/^2/);
    expect(told[3]).toMatch(/^! .*(Could not find|not found|No match)/i);
    expect(told[4]).toMatch(/^! Validation failed for tool "read":\n {2}- .*path/);
    const [, edited] = (await talk.raw()).filter((event) => event.type === 'tool_execution_end');
    expect(edited?.result.details).toMatchObject({ diff: expect.stringContaining('2') });
  });

  test('bash runs, streams its output and fails with the exit code', async () => {
    const updates: SessionEvent[] = [];
    const talk = harness.talk(agent, [
      {
        calls: [
          {
            name: 'bash',
            args: { command: 'echo begun; while [ ! -f go ]; do sleep 0.05; done; echo $((6*7)); rm go' },
          },
        ],
      },
      { calls: [{ name: 'bash', args: { command: 'echo bad; exit 3' } }] },
      { text: 'Done' },
    ]);
    const end = talk.session.subscribe((event) => void (event.type === 'tool_execution_update' && updates.push(event)));
    const { runId } = await talk.session.prompt('Go', { runId: 'r' });
    await waitFor(() => JSON.stringify(updates).includes('begun'), { what: 'an update' });
    writeFileSync(join(folder(cwd), 'go'), '');
    await talk.session.result(runId);
    end();
    expect(talk.asked.at(-1)?.filter((word) => word.startsWith('result'))).toEqual([
      expect.stringMatching(/^result of bash: begun\n42/),
      expect.stringMatching(/^result of bash \(error\): bad[\s\S]*exited with code 3/),
    ]);
  });

  test('an abort ends the command', async () => {
    const talk = harness.talk(agent, [{ calls: [{ name: 'bash', args: { command: 'touch started; sleep 600' } }] }]);
    await talk.session.prompt('Go', { runId: 'r' });
    await waitFor(() => readFileSync(join(folder(cwd), 'started')) !== undefined, { what: 'the command' });
    await talk.session.abort('r');
    expect(await talk.session.result('r')).toMatchObject({ status: 'aborted' });
    expect((await talk.transcript()).find((word) => word.startsWith('result'))).toMatch(/aborted/i);
  });
});

test("all seven of pi-coding-agent's tools are adapted, and ls sees the files", async () => {
  writeFileSync(join(folder('1.6'), 'needle.txt'), 'hay\nneedle here\n');
  const { told } = await use('pi-1.6', ['ls', {}]);
  expect(told[0]).toContain('needle.txt');
  expect(codingTools.map(({ name }) => name)).toEqual(['read', 'bash', 'edit', 'write', 'grep', 'find', 'ls']);
});

test('arguments are prepared, coerced by the JSON Schema (of TypeBox or by hand) and validated as in pi; what only pi reads does not count', async () => {
  const { told, talk } = await use(
    'pi-own',
    ['typed', { amount: '5', tags: null }],
    ['typed', { count: 2, tags: [1] }],
    ['typed', { count: 'many' }],
  );
  expect(told.slice(0, 2)).toEqual(['typed', 'typed']);
  expect(told[2]).toMatch(/^! Validation failed for tool "typed":\n {2}- count: /);
  expect(received).toEqual([
    ['call-0-0', { count: 5 }],
    ['call-1-0', { count: 2, tags: ['1'] }],
  ]);
  expect(JSON.stringify(talk.requests.at(-1)?.messages)).not.toContain('addedToolNames');
});

test('updates are streamed until the result is there, and isError, details and terminate count', async () => {
  const updates: string[] = [];
  const talk = harness.talk('pi-own', [
    { calls: [{ name: 'failing' }] },
    { calls: [{ name: 'throwing' }] },
    { calls: [{ name: 'streaming' }] },
    { text: 'never' },
  ]);
  const end = talk.session.subscribe(
    (event) => void (event.type === 'tool_execution_update' && updates.push(textOf(event.partialResult as object))),
  );
  expect(await talk.session.run('Go', { runId: 'r' })).toMatchObject({ status: 'done', turns: 3 });
  const ends = (await talk.raw()).filter((event) => event.type === 'tool_execution_end');
  expect(ends).toMatchObject([
    { isError: true, result: { details: { code: 3 } } },
    { isError: true, result: { content: [{ text: 'broken' }], details: {} } },
    { isError: false, result: { terminate: true } },
  ]);
  const records = await harness.store.readDeltas(talk.sessionId, 0, 1_000);
  const sent = records.flatMap(({ delta }) =>
    delta.type === 'tool_update' ? [textOf(delta.partialResult as object)] : [],
  );
  expect(sent).toEqual(['half']);
  end();
});

test("the replay kind, the mode and the limits are the tool's or the caller's", () => {
  expect(own({})).toMatchObject({
    replay: 'never',
    executionMode: 'parallel',
    timeoutMs: 600_000,
    heartbeatTimeoutMs: 15_000,
    label: 'own',
  });
  expect(own({ replay: 'safe', executionMode: 'sequential', label: 'Own' })).toMatchObject({
    replay: 'safe',
    executionMode: 'sequential',
    heartbeatTimeoutMs: 3_000,
    label: 'Own',
  });
  expect(own({ replay: 'safe' }, { replay: 'keyed', timeoutMs: 5, taskQueue: 'gpu' })).toMatchObject({
    replay: 'keyed',
    timeoutMs: 5,
    taskQueue: 'gpu',
  });
});

test.each<[string, () => unknown, RegExp]>([
  ['no tool', () => fromPiTool(undefined as never), /undefined is no pi tool/],
  ['a tool without execute', () => own({ execute: 5 as never }), /own is no pi tool: execute: must be a function/],
  ['a name that providers refuse', () => own({ name: 'a b' }), /name: must be/],
  ['an unknown mode', () => own({ executionMode: 'serial' as never }), /executionMode/],
  ['an unknown option', () => own({}, { timeout: 5 }), /options of own: timeout: /],
  ['an unknown replay kind', () => own({}, { replay: 'once' }), /options of own: replay/],
])('%s is refused with a typed error', (_, make, message) => {
  expect(make).toThrow(expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(message) }));
});

import { describe, expect, test } from '@jest/globals';
import { NonRetryableHookError } from '../../src/hooks/errors.ts';
import { type Harness, type Talk, useHarness } from '../support/harness.ts';
import { failingOnce, hookEvents, image, type SpiedHook, Spies, spiedAgent } from './spies.ts';

// A row for each hook of the document's tables that runs in a worker: called when, with what, with which signal, and
// what becomes of its throw. The two policies have a file of their own, and so have the session_before events.

const spies = new Spies();
const failing = new Set<string>();
const resources = {
  skills: [{ name: 'tidy', description: 'Tidies up', content: 'Tidy.', filePath: '/skills/tidy/SKILL.md' }],
  promptTemplates: [{ name: 'greet', content: 'Hello $1' }],
};
const streamOptions = { metadata: { team: 'a' }, headers: { 'x-own': '1' } };
const harness: Harness = useHarness({
  agents: () => [
    spiedAgent('all-hooks', harness, spies, { resources, streamOptions }),
    spiedAgent('twice', harness, spies, { settings: { attempts: 2, delayMs: 1 } }),
    spiedAgent('local', harness, spies, { settings: { delayMs: 1, local: true } }),
  ],
  wrapStore: failingOnce(failing),
});

const user = { role: 'user', content: [{ type: 'text', text: 'Go' }, image], timestamp: expect.any(Number) };
const reply = expect.objectContaining({ role: 'assistant', stopReason: 'toolUse' });
const call = { type: 'toolCall', id: 'a', name: 'say', arguments: { text: 'hi' } };
const result = { content: [{ type: 'text', text: 'hi' }], details: {} };
const model = expect.objectContaining({ provider: 'scripted', id: 'main' });
const context = {
  systemPrompt: 'You are under test.',
  messages: [user, reply],
  tools: ['say', 'one_by_one', 'stubborn', 'stop', 'fail'].map((name) => ({ name, description: name })),
};

interface Row {
  hook: SpiedHook;
  signal: boolean;
  /** Times that a run with one tool call and two replies asks each handler. */
  times: number;
  /** Arguments of the first call, without the signal. */
  args: unknown[];
  /** Handlers: two of the harness layer. */
  handlers: number;
  /** What its throw becomes. */
  thrown: 'tool result' | 'end of the run';
}

const rows: Row[] = [
  {
    hook: 'before_agent_start',
    signal: true,
    times: 1,
    args: [
      { type: 'before_agent_start', prompt: 'Go', images: [image], systemPrompt: 'You are under test.', resources },
    ],
    handlers: 2,
    thrown: 'end of the run',
  },
  {
    hook: 'before_provider_request',
    signal: true,
    times: 2,
    args: [{ type: 'before_provider_request', model, sessionId: expect.any(String), streamOptions }],
    handlers: 2,
    thrown: 'end of the run',
  },
  { hook: 'transformContext', signal: true, times: 2, args: [[user]], handlers: 1, thrown: 'end of the run' },
  {
    hook: 'context',
    signal: false,
    times: 2,
    args: [{ type: 'context', messages: [user] }],
    handlers: 2,
    thrown: 'end of the run',
  },
  { hook: 'convertToLlm', signal: false, times: 2, args: [[user]], handlers: 1, thrown: 'end of the run' },
  {
    hook: 'before_provider_payload',
    signal: false,
    times: 2,
    args: [
      { type: 'before_provider_payload', model, payload: expect.objectContaining({ model: 'main', messages: [user] }) },
    ],
    handlers: 2,
    thrown: 'end of the run',
  },
  {
    hook: 'beforeToolCall',
    signal: true,
    times: 1,
    args: [{ assistantMessage: reply, toolCall: call, args: { text: 'hi' }, context }],
    handlers: 1,
    thrown: 'tool result',
  },
  {
    hook: 'tool_call',
    signal: false,
    times: 1,
    args: [{ type: 'tool_call', toolCallId: 'a', toolName: 'say', input: { text: 'hi' } }],
    handlers: 2,
    thrown: 'tool result',
  },
  {
    hook: 'afterToolCall',
    signal: true,
    times: 1,
    args: [{ assistantMessage: reply, toolCall: call, args: { text: 'hi' }, result, isError: false, context }],
    handlers: 1,
    thrown: 'tool result',
  },
  {
    hook: 'tool_result',
    signal: false,
    times: 1,
    args: [{ type: 'tool_result', toolCallId: 'a', toolName: 'say', input: { text: 'hi' }, ...result, isError: false }],
    handlers: 2,
    thrown: 'tool result',
  },
  { hook: 'getSteeringMessages', signal: false, times: 3, args: [], handlers: 1, thrown: 'end of the run' },
  { hook: 'getFollowUpMessages', signal: false, times: 1, args: [], handlers: 1, thrown: 'end of the run' },
];

const first = ({ hook, handlers }: Pick<Row, 'hook' | 'handlers'>) => (handlers === 2 ? `${hook}#0` : hook);
const script = [{ calls: [{ name: 'say', id: 'a', args: { text: 'hi' } }] }, { text: 'Done' }];

const runs = new Map<string, ReturnType<typeof run>>();

/** One run for all tests that only look at it. */
function whole(agent = 'all-hooks', fail = false): ReturnType<typeof run> {
  const key = `${agent} ${fail}`;
  const known = runs.get(key) ?? run(agent, fail);
  runs.set(key, known);
  return known;
}

async function run(agent: string, fail: boolean) {
  const talk = harness.talk(agent, script);
  if (fail) failing.add(talk.sessionId);
  await talk.session.run('Go', { runId: 'r', images: [image] });
  return talk;
}

const request = (hooks: string[] = []) => [
  ...['before_provider_request#0', 'before_provider_request#1', 'transformContext', 'context#0', 'context#1'],
  ...['convertToLlm', 'before_provider_payload#0', 'before_provider_payload#1', ...hooks],
];
const order = [
  ...['before_agent_start#0', 'before_agent_start#1', 'getSteeringMessages'],
  ...request([
    'beforeToolCall',
    'tool_call#0',
    'tool_call#1',
    'afterToolCall',
    'tool_result#0',
    'tool_result#1',
    'getSteeringMessages',
  ]),
  ...request(['getSteeringMessages', 'getFollowUpMessages']),
];

test.each(['all-hooks', 'local'])('the hooks of a run come in the order of the document (%s)', async (agent) => {
  expect(spies.names(await whole(agent))).toEqual(order);
});

test('no retry of an effect asks a hook again, except one that sets headers', async () => {
  const talk = await whole('all-hooks', true);
  expect(spies.names(talk)).toEqual(order);
  expect((await talk.session.stats('r')).byKind).toMatchObject({
    start: { effects: 1, attempts: 2 },
    model: { effects: 2, attempts: 4 },
    gate: { effects: 1, attempts: 2 },
    tool: { effects: 1, attempts: 2 },
    queue: { effects: 2, attempts: 4 },
  });
  expect(talk.requests).toHaveLength(4);
});

test('a replay of the workflow asks no hook', async () => {
  const talk = await whole();
  await harness.endings[0]?.();
  const again = await harness.startWorker();
  harness.endings[0] = again;
  expect(await talk.session.queues()).toMatchObject({ steer: [] });
  expect(spies.names(talk)).toEqual(order);
});

describe.each(rows)('$hook', (row) => {
  const { hook, signal, times, args, handlers, thrown } = row;
  const name = first(row);

  test(`gets its fields ${signal ? 'and a signal' : 'alone'}, and agent.signal works inside`, async () => {
    const talk = await whole();
    const asked = spies.of(talk).filter((call) => call.hook === name);
    expect(asked).toHaveLength(times);
    expect(asked[0]?.args).toEqual(signal ? [...args, expect.any(AbortSignal)] : args);
    for (const { agentSignal } of asked) expect(agentSignal).toBeInstanceOf(AbortSignal);
    if (signal) expect(asked[0]?.args.at(-1)).toBe(asked[0]?.agentSignal);
  });

  test('is told in the log once for each handler and asking, with its tries', async () => {
    const events = await hookEvents(await whole('all-hooks', true), hook);
    expect(events.map(({ handler, attempt }) => [handler, attempt])).toEqual(
      Array.from({ length: times }, () => Array.from({ length: handlers }, (_, handler) => [handler, 1])).flat(),
    );
    for (const { durationMs } of events) expect(durationMs).toBeGreaterThanOrEqual(0);
  });

  test('that throws is tried three times, as often as its settings say, or once when it says that it will not get better', async () => {
    const cases = [
      { agent: 'all-hooks', error: new Error('out of order'), tries: 3 },
      { agent: 'twice', error: new Error('out of order'), tries: 2 },
      { agent: 'all-hooks', error: new NonRetryableHookError('out of order'), tries: 1 },
    ];
    const tried = cases.map(async ({ agent, error }) => {
      const talk = harness.talk(agent, script);
      talk.accepted.push('Go');
      spies.plan(talk, name, () => Promise.reject(error));
      await talk.session.prompt('Go', { runId: 'r' });
      await expectThrown(talk);
      const events = (await hookEvents(talk, hook)).filter(({ outcome }) =>
        JSON.stringify(outcome).includes('out of order'),
      );
      return { calls: spies.count(talk, name), told: events.map(({ attempt }) => attempt) };
    });
    expect(await Promise.all(tried)).toEqual(cases.map(({ tries }) => ({ calls: tries, told: [tries] })));
  });

  async function expectThrown(talk: Talk): Promise<void> {
    if (thrown === 'tool result') {
      expect(await talk.session.result('r')).toMatchObject({ status: 'done', text: 'Done' });
      expect(talk.asked[1]?.at(-1)).toBe('result of say (error): out of order');
      return;
    }
    const error = { code: 'hook', message: `Hook ${hook} failed: out of order`, details: { hook } };
    await expect(talk.session.result('r')).rejects.toMatchObject(error);
    expect((await talk.transcript())[0]).toBe('user: Go');
    expect((await talk.events('r')).slice(-3)).toEqual(['turn_end', 'agent_end: error hook', 'settled']);
    expect(await talk.session.status()).toMatchObject({ phase: 'idle' });
  }

  test('that throws at first and then answers has done no harm', async () => {
    const talk = harness.talk('all-hooks', script);
    let throws = 2;
    spies.plan(talk, name, () => (throws-- > 0 ? Promise.reject(new Error('not yet')) : undefined));
    expect(await talk.session.run('Go', { runId: 'r' })).toMatchObject({ status: 'done', text: 'Done' });
    expect((await hookEvents(talk, hook))[0]).toMatchObject({ attempt: 3 });
  });

  test('hears of an abort by its signal, and is not tried again; the run ends as aborted', async () => {
    const talk = harness.talk('all-hooks', script);
    talk.accepted.push('Go');
    spies.plan(talk, name, () => {
      const { agentSignal } = spies.of(talk).at(-1) ?? {};
      return harness.gates.pass(`${talk.sessionId}/in`, agentSignal);
    });
    await talk.session.prompt('Go', { runId: 'r' });
    await talk.reached('in');
    await talk.session.abort('r');
    expect(await talk.session.result('r')).toMatchObject({ status: 'aborted' });
    expect(spies.of(talk).findLast((call) => call.hook === name)?.agentSignal?.aborted).toBe(true);
    expect(spies.count(talk, name)).toBe(1);
  });
});

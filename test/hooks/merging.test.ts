import type { SimpleStreamOptions } from '@earendil-works/pi-ai';
import { describe, expect, test } from '@jest/globals';
import type { Agent } from '../../src/agent/agent.ts';
import { type AgentMessage, textOf } from '../../src/common/messages.ts';
import type {
  BeforeAgentStartEvent,
  ContextEvent,
  ToolCallEvent,
  ToolResultEvent,
} from '../../src/hooks/harness-types.ts';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';
import { hookEvents, note, Spies, spiedAgent } from './spies.ts';

// What the answers of several handlers make together, hook for hook.

const spies = new Spies();
const streamOptions = {
  headers: { a: '1', b: '2' },
  metadata: { team: 'x' },
  cacheRetention: 'short',
  timeoutMs: 5_000,
} as const;
let late: Agent;
const harness: Harness = useHarness({
  agents: () => {
    late = testAgent('late', { tools: loopTools(harness), lingerMs: 1 });
    return [spiedAgent('all-hooks', harness, spies, { streamOptions }), late];
  },
});

const script = [{ calls: [{ name: 'say', id: 'a', args: { text: 'hi' } }] }, { text: 'Done' }];
const start = (): Talk => harness.talk('all-hooks', script);
const run = (talk: Talk) => talk.session.run('Go', { runId: 'r' });
const events = (talk: Talk, hook: string) =>
  spies.of(talk).flatMap(({ hook: name, args }) => (name === hook ? [args[0] as never] : []));
const text = (content: string) => [{ type: 'text' as const, text: content }];

describe('before_agent_start', () => {
  test('messages are concatenated behind the prompt, and prompts chain and hold for every request of the run', async () => {
    const talk = start();
    talk.accepted.push('Go', 'one', 'two', 'three');
    spies.plan(talk, 'before_agent_start#0', ({ prompt }: BeforeAgentStartEvent) =>
      prompt === 'Go' ? { messages: [note('one')], systemPrompt: 'You are first.' } : undefined,
    );
    spies.plan(talk, 'before_agent_start#1', ({ prompt, systemPrompt }: BeforeAgentStartEvent) =>
      prompt === 'Go'
        ? { messages: [note('two'), note('three')], systemPrompt: `${systemPrompt} And second.` }
        : undefined,
    );
    await run(talk);
    expect(talk.asked[0]).toEqual(['user: Go', 'user: one', 'user: two', 'user: three']);
    expect(talk.requests.map(({ systemPrompt }) => systemPrompt)).toEqual(Array(2).fill('You are first. And second.'));
    expect(events(talk, 'beforeToolCall')).toMatchObject([{ context: { systemPrompt: 'You are first. And second.' } }]);
    expect((await hookEvents(talk, 'before_agent_start')).map(({ outcome }) => outcome)).toEqual([
      { messages: 1, systemPrompt: true },
      { messages: 2, systemPrompt: true },
    ]);
    await talk.session.run('Again', { runId: 'r2' });
    expect(events(talk, 'before_agent_start#1')).toMatchObject([
      { prompt: 'Go' },
      { prompt: 'Again', systemPrompt: 'You are under test.' },
    ]);
  });

  test('messages for the next turn that the run has taken are not lost when it throws', async () => {
    const talk = start();
    talk.accepted.push('Go', 'for later');
    spies.plan(talk, 'before_agent_start#1', () => Promise.reject(new Error('no start')));
    await talk.session.nextTurn('for later');
    await expect(run(talk)).rejects.toMatchObject({ code: 'hook' });
    expect(await talk.transcript()).toEqual(['user: for later', 'user: Go', 'assistant: ']);
    expect(talk.requests).toEqual([]);
  });

  test.each<[string, unknown]>([
    ['an assistant message', { messages: [{ role: 'assistant', content: [] }] }],
    ['a prompt that is no text', { systemPrompt: 5 }],
  ])('%s ends the run', async (_, answer) => {
    const talk = start();
    spies.plan(talk, 'before_agent_start#0', () => answer);
    await expect(run(talk)).rejects.toMatchObject({ code: 'hook', details: { hook: 'before_agent_start' } });
  });
});

describe('context', () => {
  test('transformContext comes first, then each handler sees what the one before returned, and the transcript stays', async () => {
    const talk = start();
    spies.plan(talk, 'transformContext', (messages: AgentMessage[]) => [note('t'), ...messages]);
    spies.plan(talk, 'context#0', ({ messages }: ContextEvent) => ({ messages: [...messages, note('c0')] }));
    spies.plan(talk, 'context#1', ({ messages }: ContextEvent) => ({
      messages: messages.filter((message) => textOf(message) !== 't'),
    }));
    await run(talk);
    expect(events(talk, 'context#1').map(({ messages }: ContextEvent) => messages.map(textOf))[0]).toEqual([
      't',
      'Go',
      'c0',
    ]);
    expect(talk.asked[0]).toEqual(['user: Go', 'user: c0']);
    expect(await talk.transcript()).toEqual(['user: Go', 'assistant:  +say', 'result of say: hi', 'assistant: Done']);
    expect((await hookEvents(talk, 'context')).slice(0, 2).map(({ outcome }) => outcome)).toEqual([
      { before: 2, after: 3 },
      { before: 3, after: 2 },
    ]);
  });

  test('messages are frozen: a handler that changes one in place ends the run, and says which hook it was', async () => {
    const talk = start();
    spies.plan(talk, 'context#0', ({ messages }: ContextEvent) => {
      (messages[0] as { content: unknown }).content = text('forged');
    });
    await expect(run(talk)).rejects.toMatchObject({
      code: 'hook',
      message: expect.stringMatching(/Hook context failed: .*read only/),
    });
  });
});

describe('before_provider_request', () => {
  test('patches apply in order: values set, undefined clears, maps merge by key', async () => {
    const talk = start();
    spies.plan(talk, 'before_provider_request#0', () => ({
      streamOptions: { headers: { a: undefined, c: '3' }, timeoutMs: undefined, cacheRetention: 'none' },
    }));
    spies.plan(talk, 'before_provider_request#1', () => ({
      streamOptions: { metadata: { team: undefined }, headers: { b: '22' } },
    }));
    await run(talk);
    expect(events(talk, 'before_provider_request#1')[0]).toMatchObject({
      streamOptions: { headers: { b: '2', c: '3' }, metadata: { team: 'x' }, cacheRetention: 'none' },
    });
    expect(talk.requests[0]?.options).toMatchObject({
      headers: { b: '22', c: '3' },
      cacheRetention: 'none',
    } satisfies SimpleStreamOptions);
    expect(talk.requests[0]?.options.metadata).toBeUndefined();
    expect((await hookEvents(talk, 'before_provider_request'))[0]?.outcome).toEqual({
      changed: expect.arrayContaining(['headers', 'timeoutMs', 'cacheRetention']),
    });
  });

  test('what a handler does to its copy of the options changes nothing', async () => {
    const talk = start();
    spies.plan(
      talk,
      'before_provider_request#0',
      ({ streamOptions }: { streamOptions: { headers: Record<string, string> } }) => {
        streamOptions.headers.a = 'forged';
      },
    );
    await run(talk);
    expect(talk.requests[0]?.options.headers).toMatchObject({ a: '1' });
  });

  test('a handler that sets headers is asked again by a retry, with agent.signal and its tries; the answer before the last try counts', async () => {
    const talk = harness.talk('all-hooks', [{ text: 'Done', error: '503 service unavailable', failTimes: 1 }]);
    let asked = 0;
    spies.plan(talk, 'before_provider_request#0', () => {
      asked += 1;
      if (asked === 2) throw new Error('the vault is away');
      return { streamOptions: { headers: { 'x-token': `t${asked}` }, metadata: { asked } } };
    });
    expect(await run(talk)).toMatchObject({ status: 'done' });
    expect(talk.requests.map(({ options }) => options.headers?.['x-token'])).toEqual(['t1', 't3']);
    // All else is what the first attempt sent.
    expect(talk.requests.map(({ options }) => options.metadata)).toEqual(Array(2).fill({ team: 'x', asked: 1 }));
    const again = spies.of(talk).filter(({ hook }) => hook === 'before_provider_request#0');
    for (const { agentSignal, args } of again) expect(args[1]).toBe(agentSignal);
    expect(spies.count(talk, 'before_provider_request#1')).toBe(1);
  });
});

describe('before_provider_payload', () => {
  type Payload = { payload: Record<string, unknown> };

  test('each handler gets the payload of the one before, and the last is sent', async () => {
    const talk = start();
    spies.plan(talk, 'before_provider_payload#0', ({ payload }: Payload) => ({ payload: { ...payload, top_p: 0.5 } }));
    spies.plan(talk, 'before_provider_payload#1', ({ payload }: Payload) => ({
      payload: { ...payload, top_k: (payload.top_p as number) * 10 },
    }));
    await run(talk);
    expect(talk.requests[0]?.payload).toMatchObject({ model: 'main', top_p: 0.5, top_k: 5 });
    expect((await hookEvents(talk, 'before_provider_payload')).slice(0, 2).map(({ outcome }) => outcome)).toEqual([
      { changed: ['top_p'] },
      { changed: ['top_k'] },
    ]);
  });

  test('a retry of the request sends the same payload without asking', async () => {
    const talk = harness.talk('all-hooks', [{ text: 'Done', error: '503 service unavailable', failTimes: 1 }]);
    spies.plan(talk, 'before_provider_payload#0', ({ payload }: Payload) => {
      payload.seed = spies.count(talk, 'before_provider_payload#0');
      delete payload.tools;
    });
    await run(talk);
    expect(talk.requests.map(({ payload }) => payload)).toMatchObject([{ seed: 1 }, { seed: 1 }]);
    expect(talk.requests[1]?.payload).toEqual(talk.requests[0]?.payload);
    expect(talk.requests[1]?.payload).not.toHaveProperty('tools');
    expect(spies.count(talk, 'before_provider_payload#0')).toBe(1);
  });
});

describe('tool_call', () => {
  test.each([
    ['beforeToolCall', ['beforeToolCall']],
    ['tool_call#0', ['beforeToolCall', 'tool_call#0']],
    ['tool_call#1', ['beforeToolCall', 'tool_call#0', 'tool_call#1']],
  ])('the first block stands: %s', async (hook, asked) => {
    const talk = start();
    spies.plan(talk, hook, () => ({ block: true, reason: `${hook} says no` }));
    await run(talk);
    expect(spies.names(talk).filter((name) => name === 'beforeToolCall' || name.startsWith('tool_call'))).toEqual(
      asked,
    );
    expect(talk.asked[1]?.at(-1)).toBe(`result of say (error): ${hook} says no`);
    expect(spies.count(talk, 'tool_result#0')).toBe(0);
    expect((await hookEvents(talk)).findLast((event) => event.hook === hook.split('#')[0])?.outcome).toEqual({
      block: true,
      reason: `${hook} says no`,
    });
  });

  test.each(['beforeToolCall', 'tool_call#0'])(
    'a question to a person is recorded, and the call is blocked: approval required (%s)',
    async (hook) => {
      const talk = start();
      spies.plan(talk, hook, () => ({ ask: { reason: 'May it speak?', expiresAfter: 60_000 } }));
      await run(talk);
      expect(talk.asked[1]?.at(-1)).toMatch(/^result of say \(error\): approval required: May it speak\?$/i);
      expect((await hookEvents(talk, hook.split('#')[0])).at(-1)?.outcome).toEqual({
        ask: { reason: 'May it speak?', expiresAfter: 60_000 },
      });
      expect((await talk.raw()).find((event) => event.type === 'tool_execution_end')).toMatchObject({
        outcome: 'blocked',
      });
    },
  );

  test('arguments that handlers change in place add up, reach the tool as JSON, and the transcript keeps the call', async () => {
    const talk = start();
    const change =
      (more: string) =>
      ({ input }: ToolCallEvent) => {
        input.text = `${input.text}${more}`;
      };
    spies.plan(talk, 'beforeToolCall', ({ args }: { args: object }) => void Object.assign(args, { when: new Date(0) }));
    spies.plan(talk, 'tool_call#0', change(' there'));
    spies.plan(talk, 'tool_call#1', change('!'));
    await run(talk);
    expect(talk.asked[1]?.slice(1)).toEqual(['assistant:  +say', 'result of say: hi there!']);
    expect(events(talk, 'tool_result#0')).toMatchObject([
      { input: { text: 'hi there!', when: '1970-01-01T00:00:00.000Z' } },
    ]);
    expect(talk.requests[1]?.messages[1]).toMatchObject({ content: [{ type: 'toolCall', arguments: { text: 'hi' } }] });
  });

  test('a try that changes the arguments and throws leaves no trace in them', async () => {
    const talk = start();
    let tries = 0;
    spies.plan(talk, 'tool_call#0', ({ input }: ToolCallEvent) => {
      input.text = `${input.text}+`;
      tries += 1;
      if (tries < 3) throw new Error('not yet');
    });
    await run(talk);
    expect(talk.asked[1]?.at(-1)).toBe('result of say: hi+');
  });
});

describe('tool_result', () => {
  test('each handler sees the patched result, a null or absent field keeps what was there', async () => {
    const talk = start();
    spies.plan(talk, 'afterToolCall', () => ({ content: text('after'), details: { step: 1 } }));
    spies.plan(talk, 'tool_result#0', ({ content }: ToolResultEvent) => ({
      content: text(`${textOf({ content })} 0`),
      details: null,
      isError: true,
    }));
    spies.plan(talk, 'tool_result#1', ({ content }: ToolResultEvent) => ({
      content: text(`${textOf({ content })} 1`),
    }));
    await run(talk);
    expect(events(talk, 'tool_result#0')).toMatchObject([
      { content: text('after'), details: { step: 1 }, isError: false },
    ]);
    expect(events(talk, 'tool_result#1')).toMatchObject([
      { content: text('after 0'), details: { step: 1 }, isError: true },
    ]);
    expect((await talk.raw()).find((event) => event.type === 'tool_execution_end')).toMatchObject({
      isError: true,
      result: { content: text('after 0 1'), details: { step: 1 } },
    });
    expect((await hookEvents(talk, 'tool_result')).map(({ outcome }) => outcome)).toEqual([
      { changed: ['content', 'isError'] },
      { changed: ['content'] },
    ]);
  });

  test('usage that handlers return counts in the totals of run and session', async () => {
    const talk = start();
    const usage = {
      input: 1_000,
      output: 7,
      cacheRead: 0,
      cacheWrite: 0,
      totalTokens: 1_007,
      cost: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, total: 2 },
    };
    spies.plan(talk, 'tool_result#0', () => ({ usage }));
    const plain = (await run(harness.talk('all-hooks', script))).usage;
    const { usage: counted } = await run(talk);
    expect(counted.input - plain.input).toBe(1_000);
    expect(counted.cost - plain.cost).toBe(2);
    expect(events(talk, 'tool_result#1')).toMatchObject([{ usage }]);
    expect((await talk.session.stats()).usage).toMatchObject({ cost: counted.cost, input: counted.input });
  });

  test('terminate from a handler ends the run after the turn', async () => {
    const talk = start();
    spies.plan(talk, 'tool_result#1', () => ({ terminate: true }));
    expect(await run(talk)).toMatchObject({ status: 'done', turns: 1 });
  });

  test('a call that never ran is not shown to result hooks', async () => {
    const talk = harness.talk('all-hooks', [
      { calls: [{ name: 'nobody' }, { name: 'say', args: { text: { not: 'a text' } } }] },
      { text: 'Done' },
    ]);
    await run(talk);
    expect(spies.names(talk).filter((name) => /tool/i.test(name))).toEqual([]);
  });

  test('a tool that throws is shown as an error', async () => {
    const talk = harness.talk('all-hooks', [{ calls: [{ name: 'fail', args: { text: 'broken' } }] }, { text: 'Done' }]);
    await run(talk);
    expect(events(talk, 'tool_result#0')).toMatchObject([{ content: text('broken'), isError: true }]);
  });
});

describe('subscription', () => {
  test('a handler that is taken away is not asked again, also of a gate, and what is added counts', async () => {
    const asked: string[] = [];
    const hear = (name: string) => () => void asked.push(name);
    const gate = hear('gate');
    const ends = [late.on('tool_call', gate), late.on('tool_call', gate), late.on('tool_result', hear('result'))];
    const talk = harness.talk('late', (request) => script[request.messages.at(-1)?.role === 'user' ? 0 : 1]!);
    await talk.session.run('one');
    expect(asked).toEqual(['gate', 'result']);
    ends[1]?.();
    ends[2]?.();
    await talk.session.run('two');
    expect(asked).toEqual(['gate', 'result']);
    expect(talk.asked.at(-1)?.at(-1)).toBe('result of say: hi');
    await talk.closed();
    const end = late.on('tool_call', hear('later'));
    await talk.session.run('three');
    end();
    expect(asked).toEqual(['gate', 'result', 'later']);
  });

  test('a handler that takes itself away does not cost its neighbour its turn', async () => {
    const asked: string[] = [];
    const once = late.on('context', () => {
      asked.push('once');
      once();
    });
    const end = late.on('context', () => void asked.push('always'));
    await harness.talk('late', script).session.run('Go');
    end();
    expect(asked).toEqual(['once', 'always', 'always']);
  });

  test('unknown events, handlers that are no functions and wrong settings are refused', () => {
    const wrong = [
      () => late.on('tool_cal' as never, (() => {}) as never),
      () => late.on('context', 5 as never),
      () => late.on('context', () => undefined, { attempts: 0 }),
      () => late.on('context', () => undefined, { attemps: 2 } as never),
    ];
    for (const on of wrong) expect(on).toThrow(expect.objectContaining({ code: 'invalid_config' }));
  });
});

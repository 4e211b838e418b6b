import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import type { HookInstaller } from '../../src/agent/agent.ts';
import { earlyTermination } from '../../src/common/early-termination.ts';
import type { AgentMessage } from '../../src/common/messages.ts';
import { emptyUsage } from '../../src/common/usage.ts';
import { type Caller, withCaller } from '../../src/hooks/current-signal.ts';
import {
  auditLog,
  contextWindow,
  HookRegistryOf,
  permissionGate,
  rateLimit,
  redactSecrets,
  secretRedactor,
} from './ready-support.ts';

// Ready-made hooks alone, asked as a worker asks them. With a worker they are tested in ready-worker.test.ts.

const text = (content: string) => [{ type: 'text' as const, text: content }];
const user = (content: string): AgentMessage => ({ role: 'user', content: text(content), timestamp: 1 });
const calls = (...ids: string[]): AgentMessage => ({
  role: 'assistant',
  content: ids.map((id) => ({ type: 'toolCall' as const, id, name: 'say', arguments: {} })),
  api: 'x',
  provider: 'x',
  model: 'x',
  usage: { ...emptyUsage(), totalTokens: 1_000_000 },
  stopReason: 'toolUse',
  timestamp: 1,
});
const result = (id: string, content: string): AgentMessage => ({
  role: 'toolResult',
  toolCallId: id,
  toolName: 'say',
  content: text(content),
  isError: false,
  timestamp: 1,
});

describe('contextWindow', () => {
  const pruned = async (messages: AgentMessage[], options: object) => {
    const hooks = new HookRegistryOf(contextWindow({ maxTokens: 100, ...options }));
    return (await hooks.ask('context', { type: 'context', messages }))?.messages;
  };
  const long = (name: string) => user(`${name} ${'x'.repeat(118)}`); // about 30 tokens

  test('a context below the limit is left alone', async () => {
    expect(await pruned([user('first'), long('a'), long('b')], {})).toBeUndefined();
  });

  test('above it the oldest go, down to the target, and the first user message stays', async () => {
    const messages = [user('first'), ...['a', 'b', 'c', 'd', 'e'].map(long)];
    expect(await pruned(messages, { targetTokens: 65 })).toEqual([messages[0], ...messages.slice(3)]);
    expect(await pruned(messages, { targetTokens: 65, keepFirstUserMessage: false })).toEqual(messages.slice(3));
  });

  test('a call and its results stay or go together, even with something between them', async () => {
    const odd = { role: 'note', text: 'between', timestamp: 1 } as unknown as AgentMessage;
    const messages = [
      user('first'),
      calls('1', '2'),
      result('1', 'x'.repeat(200)),
      odd,
      result('2', 'y'.repeat(200)),
      calls('3'),
      result('3', 'z'),
    ];
    expect(await pruned(messages, { targetTokens: 20 })).toEqual([messages[0], ...messages.slice(5)]);
    expect(await pruned(messages.slice(0, 5), { targetTokens: 20 })).toBeUndefined();
  });

  test('the newest message stays, however large', async () => {
    const messages = [user('first'), long('a'), user('x'.repeat(4_000))];
    expect(await pruned(messages, {})).toEqual([messages[0], messages[2]]);
  });

  test('the cut stands still while messages come, until the limit is reached again', async () => {
    const messages = [user('first'), ...Array.from({ length: 12 }, (_, index) => long(`m${index}`))];
    const cuts: number[] = [];
    for (let length = 1; length <= messages.length; length++) {
      const kept = await pruned(messages.slice(0, length), { targetTokens: 70 });
      cuts.push(kept === undefined ? 0 : messages.indexOf(kept[1]!));
    }
    expect(new Set(cuts).size).toBeLessThan(8);
    expect(cuts).toEqual(cuts.toSorted((left, right) => left - right));
  });

  test('what a reply reported is not taken for its own size', async () => {
    expect(await pruned([user('first'), calls('1'), result('1', 'ok')], {})).toBeUndefined();
  });

  test('no list of messages is cut so that a result loses its call', async () => {
    for (let seed = 1; seed < 60; seed++) {
      const messages: AgentMessage[] = [user('first')];
      for (let turn = 0; turn < 8; turn++) {
        const ids = Array.from({ length: (seed * (turn + 3)) % 4 }, (_, index) => `${turn}-${index}`);
        if (ids.length === 0) messages.push(long(`u${turn}`));
        else messages.push(calls(...ids), ...ids.map((id) => result(id, 'r'.repeat((seed * 37 * turn) % 300))));
      }
      const kept = (await pruned(messages, { targetTokens: 1 + (seed % 90) })) ?? messages;
      let open: string[] = [];
      for (const message of kept) {
        if (message.role === 'toolResult') {
          expect(open.shift()).toBe((message as { toolCallId: string }).toolCallId);
          continue;
        }
        expect(open).toEqual([]);
        if (message.role === 'assistant') open = (message.content as { id: string }[]).map(({ id }) => id);
      }
      expect(open).toEqual([]);
      expect(kept[0]).toBe(messages[0]);
    }
  });
});

describe('permissionGate', () => {
  const decide = (options: object, toolName: string, input: Record<string, unknown> = {}) =>
    new HookRegistryOf(permissionGate(options)).ask('tool_call', {
      type: 'tool_call',
      toolCallId: 'a',
      toolName,
      input,
    });

  test('the first rule that matches decides, and what none matches is denied', async () => {
    const rules = [
      { tool: 'bash', args: { command: /\brm\b/g }, permission: 'deny', reason: 'no deleting' },
      { tool: 'bash', args: { command: 'git *' }, permission: 'allow' },
      { tool: ['read', /^list_/], permission: 'allow' },
      {
        tool: 'deploy',
        args: { 'target.env': 'prod' },
        permission: 'ask',
        reason: 'Deploy to production?',
        expiresAfter: 60_000,
      },
    ];
    for (const _ of [1, 2])
      expect(await decide({ rules }, 'bash', { command: 'git status && rm -r x' })).toEqual({
        block: true,
        reason: 'no deleting',
      });
    expect(await decide({ rules }, 'bash', { command: 'git log\n--oneline' })).toBeUndefined();
    expect(await decide({ rules }, 'bash', { command: 'ls' })).toEqual({
      block: true,
      reason: 'Permission denied: bash may not be called like this.',
    });
    expect(await decide({ rules }, 'list_files')).toBeUndefined();
    expect(await decide({ rules }, 'already')).toMatchObject({ block: true });
    const asked = { ask: { reason: 'Deploy to production?', expiresAfter: 60_000 } };
    expect(await decide({ rules }, 'deploy', { target: { env: 'prod' } })).toEqual(asked);
    expect(await decide({ rules }, 'deploy', { target: {} })).toMatchObject({ block: true });
    expect(await decide({ rules }, 'deploy', Object.create({ 'target.env': 'prod' }))).toMatchObject({ block: true });
  });

  test('check is asked for the rest, and otherwise decides what it leaves open', async () => {
    const check = async ({ toolName }: { toolName: string }) =>
      toolName === 'a' ? 'allow' : toolName === 'b' ? { block: true, reason: 'b' } : undefined;
    expect(await decide({ check }, 'a')).toBeUndefined();
    expect(await decide({ check }, 'b')).toEqual({ block: true, reason: 'b' });
    expect(await decide({ check }, 'c')).toMatchObject({ block: true });
    expect(await decide({ check, otherwise: 'ask' }, 'c')).toEqual({ ask: { reason: 'May c be called?' } });
    expect(await decide({ check, otherwise: 'allow' }, 'c')).toBeUndefined();
  });

  test('numbers and lists are matched as JSON', async () => {
    const rules = [{ args: { n: '[1,*]' }, permission: 'allow' }];
    expect(await decide({ rules }, 'x', { n: [1, 2] })).toBeUndefined();
    expect(await decide({ rules }, 'x', { n: 1 })).toMatchObject({ block: true });
  });
});

describe('redactSecrets', () => {
  const github = `ghp_${'a1B2'.repeat(9)}`;
  const redact = secretRedactor({ values: ['hunter2hunter2'], patterns: [/\bEMP-(?<secret>\d{6})\b/] });

  test.each([
    ['a GitHub token', `push with ${github} now`, 'push with [redacted] now'],
    ['an AWS key', 'id AKIAIOSFODNN7EXAMPLE.', 'id [redacted].'],
    ['an Anthropic key', `x=sk-ant-api03-${'Ab1_'.repeat(8)}`, 'x=[redacted]'],
    [
      'a private key over lines',
      'a\n-----BEGIN RSA PRIVATE KEY-----\nMII\nabc\n-----END RSA PRIVATE KEY-----\nb',
      'a\n[redacted]\nb',
    ],
    [
      'a JSON web token',
      `t ${['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxMjM0In0', 'abcdefghijk'].join('.')} t`,
      't [redacted] t',
    ],
    ['a password in a URL', 'postgres://app:s3cr3t@db/x', 'postgres://app:[redacted]@db/x'],
    ['a bearer token', 'Authorization: Bearer abcdefghijklmnop1234', 'Authorization: Bearer [redacted]'],
    ['a line of an env file', 'DB_PASSWORD="abc123def456ghi"', 'DB_PASSWORD="[redacted]"'],
    ['a known value', 'login hunter2hunter2!', 'login [redacted]!'],
    ['a shape of its own, the named part', 'badge EMP-123456', 'badge EMP-[redacted]'],
    ['two side by side', `${github} ${github}`, '[redacted] [redacted]'],
  ])('finds %s', (_, before, after) => {
    expect(redact(before)).toBe(after);
    expect(redact(after)).toBe(after);
  });

  test.each([
    'const token = getTokenFromStore2();',
    'apiKey: process.env.API_KEY',
    'password: string;',
    'In Asia the token bucket is a skill of sk-learn users',
    'see https://example.org:8080/path and user@example.org',
    'commit 9fceb02d0ae598e95dc970b74767f19372d61af8',
  ])('leaves plain text alone: %s', (plain) => {
    expect(redact(plain)).toBe(plain);
  });

  test('nested values, names of fields and fields with telling names are covered', () => {
    expect(
      redact({
        a: [{ deep: `x ${github}` }],
        [github]: 1,
        password: 'short',
        auth: { accessToken: ['abc', 5] },
        count: 5,
        none: null,
      }),
    ).toEqual({
      a: [{ deep: 'x [redacted]' }],
      '[redacted]': 1,
      password: '[redacted]',
      auth: { accessToken: ['[redacted]', 5] },
      count: 5,
      none: null,
    });
  });

  const hooks = new HookRegistryOf(redactSecrets({ values: ['hunter2hunter2'] }));
  const patch = (content: object[], details: unknown = {}) =>
    hooks.ask('tool_result', {
      type: 'tool_result',
      toolCallId: 'a',
      toolName: 'say',
      input: {},
      content: content as never,
      details,
      isError: false,
    });

  test('a result without a secret is not patched', async () => {
    expect(await patch([...text('plain'), { type: 'image', data: 'aGk=', mimeType: 'image/png' }])).toBeUndefined();
  });

  test('a secret over the border of two texts is found, and other blocks stay', async () => {
    const blocks = [
      ...text(`a ${github.slice(0, 10)}`),
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      ...text(`${github.slice(10)} b`),
    ];
    expect(await patch(blocks, { note: 'hunter2hunter2' })).toEqual({
      content: [...text('a [redacted]'), blocks[1], ...text(' b')],
      details: { note: '[redacted]' },
    });
  });

  test('an update never shows a secret that has only begun', () => {
    const output = `start ${github}\npw hunter2hunter2\nBearer abcdefghijklmnop1234\n-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----\nend`;
    for (let length = 0; length <= output.length; length++) {
      const partialResult = { content: text(output.slice(0, length)), details: undefined };
      const shown = hooks.askNow('tool_update', {
        type: 'tool_update',
        toolCallId: 'a',
        toolName: 'say',
        partialResult,
      });
      const [block] = (shown as { partialResult: { content: { text: string }[] } }).partialResult.content;
      for (const part of ['ghp_a1', 'hunter2', 'hunt', 'Bearer abcd', 'MII']) expect(block?.text).not.toContain(part);
    }
  });

  test.each([
    'lorem ipsum token = dolor sit amet sk-not eyJ 12:34:56 http://a:b ',
    'sk-',
    'eyJ-',
    'eyJaaaaaaaaaa.',
    'token=',
    'token=a/',
    'Bearer ',
    '-----BEGIN PRIVATE KEY-----',
    'http://a:',
    'a'.repeat(64),
    'password: "',
  ])('a megabyte of "%s" is looked through in less than two seconds, in results and in updates', (part) => {
    const much = `${part.repeat(Math.ceil(1_000_000 / part.length))} `;
    const began = performance.now();
    redact(much);
    hooks.askNow('tool_update', {
      type: 'tool_update',
      toolCallId: 'a',
      toolName: 'say',
      partialResult: { content: text(much) },
    });
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

describe('rateLimit', () => {
  const ask = (hooks: HookRegistryOf, toolName = 'say', caller: Partial<Caller> = {}) =>
    withCaller({ sessionId: 's1', signal: new AbortController().signal, ...caller }, () =>
      hooks.ask('tool_call', { type: 'tool_call', toolCallId: 'a', toolName, input: {} }),
    );

  test('calls above the limit are blocked with the time to wait', async () => {
    const hooks = new HookRegistryOf(rateLimit({ calls: 2, windowMs: 60_000 }));
    expect([await ask(hooks), await ask(hooks, 'other')]).toEqual([undefined, undefined]);
    expect(await ask(hooks)).toEqual({ block: true, reason: 'Rate limit: 2 calls in 60 s. Call say again in 60 s.' });
  });

  test('each tool, and each session, may have a limit of its own; other tools are not limited', async () => {
    const each = new HookRegistryOf(
      rateLimit({ calls: 1, windowMs: 60_000, per: 'tool', scope: 'session', tools: ['a', 'b'] }),
    );
    expect([await ask(each, 'a'), await ask(each, 'b'), await ask(each, 'c'), await ask(each, 'c')]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(await ask(each, 'a')).toMatchObject({ block: true });
    expect(await ask(each, 'a', { sessionId: 's2' })).toBeUndefined();
    const all = new HookRegistryOf(rateLimit({ calls: 1, windowMs: 60_000 }));
    expect([await ask(all), await ask(all, 'say', { sessionId: 's2' })]).toMatchObject(
      [{}, { block: true }].with(0, undefined as never),
    );
  });

  test('a call that may wait goes on in its turn, in order of arrival', async () => {
    const hooks = new HookRegistryOf(rateLimit({ calls: 1, windowMs: 40, maxWaitMs: 100 }));
    const began = performance.now();
    const passed: string[] = [];
    const pass = async (name: string) => {
      const answer = await ask(hooks);
      passed.push(`${name} ${answer === undefined ? 'passed' : 'blocked'}`);
      return performance.now() - began;
    };
    const times = await Promise.all(['a', 'b', 'c', 'd'].map(pass));
    expect(passed).toEqual(
      ['d blocked', 'a passed', 'b passed', 'c passed'].toSorted(
        (left, right) => passed.indexOf(left) - passed.indexOf(right),
      ),
    );
    expect(passed.filter((word) => word.endsWith('passed'))).toEqual(['a passed', 'b passed', 'c passed']);
    expect(times[2]).toBeGreaterThanOrEqual(78);
  });

  test('an abort ends the waiting and gives the place back', async () => {
    const hooks = new HookRegistryOf(rateLimit({ calls: 1, windowMs: 200, maxWaitMs: 300 }));
    const abort = new AbortController();
    await ask(hooks);
    const waiting = ask(hooks, 'say', { signal: abort.signal });
    abort.abort();
    await expect(waiting).rejects.toThrow();
    expect(await ask(hooks)).toBeUndefined();
  });
});

describe('auditLog', () => {
  const toolCall = {
    type: 'tool_call' as const,
    toolCallId: 'a',
    toolName: 'say',
    input: { key: `ghp_${'a1B2'.repeat(9)}` },
  };

  test('the sink gets a copy of the call and of the result, with the session', async () => {
    const records: unknown[] = [];
    const hooks = new HookRegistryOf(
      auditLog({ sink: (record) => void records.push(record), redact: secretRedactor() }),
    );
    await withCaller({ sessionId: 's1', runId: 'r1', signal: new AbortController().signal }, async () => {
      expect(await hooks.ask('tool_call', toolCall)).toBeUndefined();
      expect(
        await hooks.ask('tool_result', {
          ...toolCall,
          type: 'tool_result',
          content: text('x'),
          details: {},
          isError: true,
        }),
      ).toBeUndefined();
    });
    const facts = {
      at: expect.stringMatching(/^\d{4}-/),
      sessionId: 's1',
      runId: 'r1',
      toolCallId: 'a',
      toolName: 'say',
      input: { key: '[redacted]' },
    };
    expect(records).toEqual([
      { type: 'tool_call', ...facts },
      { type: 'tool_result', ...facts, content: text('x'), details: {}, isError: true },
    ]);
  });

  test('a sink that throws, hangs, or whose onError throws breaks nothing', async () => {
    const heard: string[] = [];
    const onError = (error: unknown, { type, toolCallId }: { type: string; toolCallId: string }) =>
      void heard.push(`${type} ${toolCallId}: ${(error as Error).message}`);
    const of = (sink: () => void | Promise<void>, more: object = {}) =>
      new HookRegistryOf(auditLog({ sink, onError, timeoutMs: 20, ...more })).ask('tool_call', toolCall);
    await of(() => Promise.reject(new Error('disk full')));
    await of(() => {
      throw new Error('at once');
    });
    await of(() => delay(60_000, undefined, { ref: false }));
    await of(() => {}, {
      redact: () => {
        throw new Error('redaction');
      },
    });
    await of(() => Promise.reject(new Error('x')), {
      onError: () => {
        throw new Error('deaf');
      },
    });
    expect(heard).toEqual([
      'tool_call a: disk full',
      'tool_call a: at once',
      'tool_call a: the sink took more than 20 ms',
      'tool_call a: redaction',
    ]);
  });
});

describe('earlyTermination', () => {
  const stops = (
    options: object,
    message: AgentMessage,
    toolResults: AgentMessage[] = [],
    messages: AgentMessage[] = [],
  ) =>
    earlyTermination(options).shouldStopAfterTurn({
      message,
      toolResults,
      context: { systemPrompt: '', messages },
      newMessages: [],
    } as never);
  const says = (words: string): AgentMessage => ({ ...calls(), content: text(words) }) as AgentMessage;

  test('stops at the marker, when all calls were of its tools and went well, or above a size', () => {
    for (const _ of [1, 2]) expect(stops({ marker: /DONE/g }, says('It is DONE'))).toBe(true);
    expect(stops({ marker: 'DONE' }, says('not yet'))).toBe(false);
    expect(stops({ tools: ['say'] }, calls('1', '2'), [result('1', ''), result('2', '')])).toBe(true);
    expect(stops({ tools: ['say'] }, calls('1'), [{ ...result('1', ''), isError: true } as AgentMessage])).toBe(false);
    expect(stops({ tools: ['other'] }, calls('1'), [result('1', '')])).toBe(false);
    expect(stops({ tools: ['say'] }, says('no calls'))).toBe(false);
    expect(stops({ maxTokens: 10 }, says('x'), [], [user('x'.repeat(100))])).toBe(true);
  });
});

test.each<[string, () => unknown, RegExp]>([
  ['contextWindow', () => contextWindow({} as never), /contextWindow: maxTokens/],
  [
    'contextWindow',
    () => contextWindow({ maxTokens: 10, targetTokens: 11 }),
    /targetTokens: must not be above maxTokens/,
  ],
  ['contextWindow', () => contextWindow({ maxTokens: 10, max: 1 } as never), /contextWindow: max: /],
  [
    'permissionGate',
    () => permissionGate({ rules: [{ permission: 'maybe' }] } as never),
    /permissionGate: rules.0.permission/,
  ],
  ['permissionGate', () => permissionGate({ check: true } as never), /check: must be a function/],
  ['redactSecrets', () => redactSecrets({ values: ['abc'] }), /at least 6 characters/],
  ['redactSecrets', () => redactSecrets({ patterns: [/x*/] }), /matches the empty text/],
  ['rateLimit', () => rateLimit({ calls: 0, windowMs: 1 }), /rateLimit: calls/],
  ['rateLimit', () => rateLimit({ calls: 1, windowMs: 1, hook: { local: true } as never }), /cannot be local/],
  ['auditLog', () => auditLog({} as never), /sink: must be a function/],
  ['earlyTermination', () => earlyTermination({}), /give marker, tools or maxTokens/],
])('%s refuses wrong options with a typed error', (_, make, message) => {
  expect(make).toThrow(expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(message) }));
});

test('what an installer installed goes away with what it returns', () => {
  const installers: HookInstaller[] = [
    contextWindow({ maxTokens: 1 }),
    permissionGate({}),
    redactSecrets(),
    rateLimit({ calls: 1, windowMs: 1 }),
    auditLog({ sink: () => {} }),
  ];
  for (const install of installers) {
    const hooks = new HookRegistryOf(install);
    expect(hooks.size).toBeGreaterThan(0);
    hooks.end();
    expect(hooks.size).toBe(0);
  }
});

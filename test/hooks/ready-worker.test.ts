import { expect, test } from '@jest/globals';
import { z } from 'zod';
import { defineTool } from '../../src/agent/tool.ts';
import type { AuditRecord } from '../../src/hooks/ready/audit-log.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';
import { readWholeLog } from '../support/transcript.ts';
import { auditLog, contextWindow, permissionGate, rateLimit, redactSecrets, secretRedactor } from './ready-support.ts';

// Ready-made hooks in a worker, installed with `use`.

const secret = `ghp_${'a1B2'.repeat(9)}`;
const audited: AuditRecord[] = [];
const of = (sessionId: string) => audited.filter((record) => record.sessionId === sessionId);

const leaky = defineTool({
  name: 'leaky',
  description: 'leaks',
  parameters: z.object({ how: z.enum(['return', 'throw', 'odd']) }),
  execute({ how }, { onUpdate }) {
    onUpdate({ content: [{ type: 'text', text: `so far: ${secret.slice(0, 15)}` }] });
    onUpdate({ content: [{ type: 'text', text: `so far: ${secret}` }], details: { token: 'short' } });
    if (how === 'odd') {
      const loop: Record<string, unknown> = {};
      loop.self = loop;
      onUpdate({ content: [], details: loop });
    }
    if (how === 'throw') throw new Error(`no access with ${secret}`);
    return {
      content: [{ type: 'text', text: `key ${secret}` }],
      details: { deep: [{ url: `https://u:${secret}@host/` }] },
    };
  },
});

const harness: Harness = useHarness({
  agents: () => {
    const tools = [...loopTools(harness), leaky];
    const audit = auditLog({ sink: (record) => void audited.push(record), redact: secretRedactor() });
    return [
      testAgent('careful', { tools, use: [redactSecrets(), audit] }),
      testAgent('permitted', {
        tools,
        use: [
          auditLog({ sink: (record) => void audited.push(record) }),
          permissionGate({
            rules: [
              { tool: 'say', args: { text: /secret/ }, permission: 'ask', reason: 'Say a secret?' },
              { tool: ['say', 'one_by_one'], permission: 'allow' },
            ],
          }),
        ],
      }),
      testAgent('limited', { tools, use: [rateLimit({ calls: 2, windowMs: 600_000, scope: 'session' })] }),
      testAgent('patient', { tools, use: [rateLimit({ calls: 1, windowMs: 600_000, maxWaitMs: 900_000 })] }),
      testAgent('short', { tools, use: [contextWindow({ maxTokens: 300, targetTokens: 100 })] }),
    ];
  },
});

const call = (name: string, args: object = {}) => ({ name, args: args as never });

test.each(['return', 'throw', 'odd'])(
  'a secret of a tool reaches neither the model, nor readers, nor the log, nor the audit (%s)',
  async (how) => {
    const talk = harness.talk('careful', [{ calls: [call('leaky', { how })] }, { text: 'Done' }]);
    await talk.session.run('Go', { runId: 'r' });
    const deltas = await harness.store.readDeltas(talk.sessionId, 0, 1_000);
    const updates = deltas.flatMap(({ delta }) => (delta.type === 'tool_update' ? [delta.partialResult] : []));
    expect(updates).toEqual([
      { content: [{ type: 'text', text: 'so far: [redacted]' }] },
      { content: [{ type: 'text', text: 'so far: [redacted]' }], details: { token: '[redacted]' } },
    ]);
    const told =
      how === 'throw' ? 'result of leaky (error): no access with [redacted]' : 'result of leaky: key [redacted]';
    expect(talk.asked[1]?.at(-1)).toBe(told);
    const { events } = await talk.workflow.fetchHistory();
    const everything = [talk.requests, deltas, await readWholeLog(harness.store, talk.sessionId), of(talk.sessionId)];
    expect(JSON.stringify(everything)).not.toContain(secret.slice(4, 20));
    expect(JSON.stringify(events)).not.toContain(Buffer.from(secret).toString('base64').slice(6, 20));
    expect(of(talk.sessionId).map(({ type, runId }) => [type, runId])).toEqual([
      ['tool_call', 'r'],
      ['tool_result', 'r'],
    ]);
  },
);

test('a permission gate lets through, asks and denies; an audit before it sees every call, and results of those that ran', async () => {
  const talk = harness.talk('permitted', [
    { calls: [call('say', { text: 'hello' }), call('say', { text: 'a secret' }), call('stop')] },
    { text: 'Done' },
  ]);
  await talk.session.run('Go', { runId: 'r' });
  expect(talk.asked[1]?.slice(2)).toEqual([
    'result of say: hello',
    expect.stringMatching(/^result of say \(error\): approval required: Say a secret\?$/i),
    'result of stop (error): Permission denied: stop may not be called like this.',
  ]);
  expect(of(talk.sessionId).map(({ type, toolCallId }) => `${type} ${toolCallId}`)).toEqual([
    ...['tool_call call-0-0', 'tool_call call-0-1', 'tool_call call-0-2', 'tool_result call-0-0'],
  ]);
});

test('a rate limit of a session blocks its third call, and another session has its own', async () => {
  const script = [{ calls: ['a', 'b', 'c'].map((text) => call('say', { text })) }, { text: 'Done' }];
  for (const talk of [harness.talk('limited', script), harness.talk('limited', script)]) {
    await talk.session.run('Go', { runId: 'r' });
    expect(talk.asked[1]?.slice(2)).toEqual([
      'result of say: a',
      'result of say: b',
      'result of say (error): Rate limit: 2 calls in 600 s. Call say again in 600 s.',
    ]);
  }
});

test('an abort ends a call that waits for its turn', async () => {
  const talk = harness.talk('patient', [
    { calls: [call('say', { text: 'a' }), call('say', { text: 'b' })] },
    { text: 'Done' },
  ]);
  await talk.session.prompt('Go', { runId: 'r' });
  await talk.logged(
    (event) => event.type === 'tool_execution_start' && event.toolCallId === 'call-0-1',
    'the second call',
  );
  await talk.session.abort('r');
  expect(await talk.session.result('r')).toMatchObject({ status: 'aborted' });
});

test('a context window prunes the request over many turns, keeps calls with their results, and leaves the transcript whole', async () => {
  const turns = 12;
  const replies = Array.from({ length: turns }, (_, turn) => ({
    calls: [call('say', { text: `${turn} ${'x'.repeat(150)}` })],
  }));
  const talk = harness.talk('short', ({ messages }) => {
    const last = messages.at(-1) as { content: { text: string }[]; role: string };
    const done = last.role === 'toolResult' ? Number(last.content[0]?.text.split(' ')[0]) + 1 : 0;
    return replies[done] ?? { text: 'Done' };
  });
  expect(await talk.session.run('The task', { runId: 'r' })).toMatchObject({
    status: 'done',
    text: 'Done',
    turns: turns + 1,
  });
  expect(await talk.transcript()).toHaveLength(2 * turns + 2);
  const lengths = talk.requests.map(({ messages }) => messages.length);
  expect(Math.max(...lengths)).toBeLessThan(2 * turns);
  for (const asked of talk.asked) expect(asked[0]).toBe('user: The task');
});

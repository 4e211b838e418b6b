import { describe, expect, test } from '@jest/globals';
import type { LogEvent, LogRecord, StreamDelta, StreamRecord } from '../../src/common/events.ts';
import type { AssistantMessage, Message } from '../../src/common/messages.ts';
import { emptyUsage } from '../../src/common/usage.ts';
import { callsWithoutResult, gluedDeltas, unpaired } from '../support/invariants.ts';

// The checkers that the crash tests rely on must themselves be able to fail.

function assistant(
  text: string,
  ids: string[] = [],
  stopReason: AssistantMessage['stopReason'] = 'toolUse',
): AssistantMessage {
  const calls = ids.map((id) => ({ type: 'toolCall' as const, id, name: 'tool', arguments: {} }));
  const origin = { api: 'scripted', provider: 'scripted', model: 'main' };
  return {
    role: 'assistant',
    content: [{ type: 'text', text }, ...calls],
    ...origin,
    usage: emptyUsage(),
    stopReason,
    timestamp: 0,
  };
}

function result(toolCallId: string): Message {
  return { role: 'toolResult', toolCallId, toolName: 'tool', content: [], isError: false, timestamp: 0 };
}

const user: Message = { role: 'user', content: 'Hello', timestamp: 0 };

describe('calls and results', () => {
  test('in order are fine, and so are those of an aborted reply without any', () => {
    expect(callsWithoutResult([user, assistant('', ['a', 'b']), result('a'), result('b'), user])).toEqual([]);
    expect(callsWithoutResult([user, assistant('', ['a'], 'aborted'), user])).toEqual([]);
  });

  test.each([
    { what: 'a missing result', messages: [assistant('', ['a', 'b']), result('a'), user], told: 'no result for b' },
    { what: 'a missing last result', messages: [assistant('', ['a'])], told: 'no result for a' },
    {
      what: 'a second result',
      messages: [assistant('', ['a']), result('a'), result('a')],
      told: 'message 2: a result of a, which nobody waits for',
    },
    { what: 'an orphan', messages: [user, result('a')], told: 'message 1: a result of a, which nobody waits for' },
    { what: 'a message between', messages: [assistant('', ['a']), user, result('a')], told: 'no result for a' },
    {
      what: 'another order',
      messages: [assistant('', ['a', 'b']), result('b'), result('a')],
      told: 'message 1: result of b before that of a',
    },
  ])('$what is found', ({ messages, told }) => {
    expect(callsWithoutResult(messages as Message[])).toContain(told);
  });
});

describe('starts and ends', () => {
  const log = (...events: LogEvent[]): LogRecord[] =>
    events.map((event, offset) => ({
      offset,
      at: 0,
      runId: 'r',
      turn: 0,
      key: `${offset}`,
      body: { kind: 'event', event },
      hash: '',
    }));
  const toolStart: LogEvent = { type: 'tool_execution_start', toolCallId: 'a', toolName: 'tool', args: {} };
  const toolEnd: LogEvent = {
    type: 'tool_execution_end',
    toolCallId: 'a',
    toolName: 'tool',
    result: { content: [] },
    isError: false,
    outcome: 'completed',
  };
  const turnEnd: LogEvent = { type: 'turn_end', messageId: 'm', toolResultIds: [] };
  const agentEnd: LogEvent = { type: 'agent_end', status: 'done' };
  const settled: LogEvent = { type: 'settled', nextTurnCount: 0 };
  const begin: LogEvent[] = [{ type: 'agent_start' }, { type: 'turn_start' }];

  test('in pairs are fine', () => {
    expect(unpaired(log(...begin, toolStart, toolEnd, turnEnd, agentEnd, settled))).toEqual([]);
  });

  test.each([
    {
      what: 'a tool without an end',
      events: [...begin, toolStart, turnEnd, agentEnd, settled],
      told: 'tool r/0/a has no end',
    },
    {
      what: 'a tool that ends twice',
      events: [...begin, toolStart, toolEnd, toolEnd, turnEnd, agentEnd, settled],
      told: 'tool r/0/a ends without a start',
    },
    {
      what: 'a turn that starts twice',
      events: [...begin, { type: 'turn_start' }, turnEnd, agentEnd, settled],
      told: 'turn r/0 starts twice',
    },
    { what: 'a run without an end', events: [...begin, turnEnd], told: 'run r has no end' },
    { what: 'a run that never settles', events: [...begin, turnEnd, agentEnd], told: 'settling of r has no end' },
    {
      what: 'a turn after the end of its run',
      events: [{ type: 'agent_start' }, agentEnd, settled, { type: 'turn_start' }, turnEnd],
      told: 'turn r/0 starts after the end of its run',
    },
    {
      what: 'a turn that outlives its run',
      events: [...begin, agentEnd, settled, turnEnd],
      told: 'turn r/0 is open when its run ends',
    },
  ])('$what is found', ({ events, told }) => {
    expect(unpaired(log(...(events as LogEvent[])))).toContain(told);
  });
});

describe('deltas', () => {
  const stored = new Map([['e', assistant('Hello', [], 'stop')]]);
  const records = (attempt: number, ...deltas: (string | StreamDelta)[]): StreamRecord[] =>
    deltas.map((each, n) => {
      const delta: StreamDelta = typeof each === 'string' ? { type: 'text_delta', contentIndex: 0, delta: each } : each;
      return { seq: 0, runId: 'r', entryId: 'e', attempt, n, delta };
    });
  const reset: StreamDelta = { type: 'reset' };

  test('of two attempts, each after a reset, are fine', () => {
    expect(gluedDeltas([...records(1, reset, 'Hel'), ...records(2, reset, 'Hel', 'lo')], stored)).toEqual([]);
  });

  test.each([
    {
      what: 'an attempt without a reset',
      deltas: records(1, 'Hello'),
      told: 'e attempt 1 does not begin with a reset',
    },
    {
      what: 'a lost delta',
      deltas: records(1, reset, 'Hel', 'lo').filter(({ n }) => n !== 1),
      told: 'e attempt 1 has a gap',
    },
    {
      what: 'a glued text',
      deltas: records(1, reset, 'Hel', 'Hello'),
      told: 'e: "HelHello" was streamed, "Hello" is stored',
    },
  ])('$what is found', ({ deltas, told }) => {
    expect(gluedDeltas(deltas, stored)).toContain(told);
  });
});

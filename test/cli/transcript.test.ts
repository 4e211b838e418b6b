import { expect, test } from '@jest/globals';
import { harmless, Ink, oneLine, wantsColour } from '../../src/cli/ink.ts';
import { usageText } from '../../src/cli/transcript/lines.ts';
import { Transcript } from '../../src/cli/transcript.ts';
import type { SessionEvent, StreamDelta } from '../../src/common/events.ts';
import type { AgentMessage, AssistantMessage } from '../../src/common/messages.ts';
import { emptyUsage, noUsage } from '../../src/common/usage.ts';

const user = (text: string): AgentMessage => ({ role: 'user', content: [{ type: 'text', text }], timestamp: 0 });

function reply(text: string, rest: Partial<AssistantMessage> = {}): AssistantMessage {
  const content = text === '' ? [] : [{ type: 'text' as const, text }];
  return {
    role: 'assistant',
    content,
    api: '',
    provider: '',
    model: '',
    usage: emptyUsage(),
    stopReason: 'stop',
    timestamp: 0,
    ...rest,
  };
}

const update = (delta: StreamDelta, attempt = 1): SessionEvent => ({
  type: 'message_update',
  entryId: 'r/0',
  attempt,
  delta: delta as never,
  message: reply(''),
});
const words = (delta: string, attempt = 1): SessionEvent =>
  update({ type: 'text_delta', contentIndex: 0, delta }, attempt);
const end = (message: AgentMessage, entryId = 'r/0'): SessionEvent => ({ type: 'message_end', entryId, message });

function render(events: SessionEvent[], ink = new Ink(false)): string {
  const transcript = new Transcript(ink);
  return events.map((event) => transcript.render(event)).join('');
}

test('words appear as they come, and the end of the message adds only what was missed', () => {
  expect(render([words('Hel'), words('lo\nyou')])).toBe('  Hello\n  you');
  expect(render([words('Hel'), end(reply('Hello'))])).toBe('  Hello\n');
  expect(render([end(reply('Hello'))])).toBe('  Hello\n');
});

test('a lost attempt is marked, and its words are not glued to those of the next', () => {
  const events = [
    words('One t'),
    { type: 'message_reset', entryId: 'r/0', attempt: 2 } as const,
    words('Two', 2),
    end(reply('Two')),
  ];
  expect(render(events)).toBe('  One t\n  ↺ that reply was lost; attempt 2 begins it again\n  Two\n');
});

test('a reply that differs from what was streamed is shown in full', () => {
  expect(render([words('Draft'), end(reply('Final'))])).toBe('  Draft\n  Final\n');
});

test('blocks of text stand on lines of their own, as in the whole message', () => {
  const message = reply('', {
    content: [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
  });
  const second: StreamDelta = { type: 'text_start', contentIndex: 1 };
  expect(render([words('a'), update(second), words('b'), end(message)])).toBe('  a\n  b\n');
});

test('each call and its outcome is one line', () => {
  const start = { type: 'tool_execution_start', toolCallId: '1', toolName: 'read', args: { path: 'a.txt' } } as const;
  const ended = (outcome: 'completed' | 'failed' | 'unknown' | 'blocked', text: string): SessionEvent => ({
    type: 'tool_execution_end',
    toolCallId: '1',
    toolName: 'read',
    isError: outcome !== 'completed',
    outcome,
    result: { content: [{ type: 'text', text }] },
  });
  const events = [
    start,
    ended('completed', 'one\ntwo\n'),
    ended('failed', 'no'),
    ended('unknown', 'who knows'),
    ended('blocked', 'not you'),
  ];
  expect(render(events).split('\n')).toEqual([
    '  → read a.txt',
    '  ← read one (2 lines)',
    '  ✗ read no',
    '  ? read outcome unknown: who knows',
    '  ✗ read blocked: not you',
    '',
  ]);
});

test('long arguments are told by their length', () => {
  const args = { path: 'a', text: 'x'.repeat(500), lines: [1, 2] };
  const line = render([{ type: 'tool_execution_start', toolCallId: '1', toolName: 'write', args }]);
  expect(line).toBe(`  → write path=a text=${'x'.repeat(39)}… (500 characters) lines=[1,2]\n`);
});

test('a message that waits is told once, for the queue it waits in', () => {
  const one = { id: '1', message: user('one') };
  const two = { id: '2', message: user('two') };
  const queues = (steer: (typeof one)[], followUp: (typeof one)[]): SessionEvent => ({
    type: 'queue_update',
    steer,
    followUp,
    nextTurn: [],
  });
  expect(render([queues([one], []), queues([one], [two]), queues([], [two]), queues([], [])])).toBe(
    '  steering waits: “one”\n  follow-up waits: “two”\n',
  );
});

test('a line of its own ends one that is open', () => {
  const events: SessionEvent[] = [words('Hel'), { type: 'signal_rejected', signal: 'steer', reason: 'bad shape' }];
  expect(render(events)).toBe('  Hel\na steer signal was refused: bad shape\n');
});

test('the end of a run says how, and why', () => {
  const ended = (rest: object) =>
    render([{ type: 'agent_end', messages: [], status: 'done', ...rest } as SessionEvent]);
  expect(ended({})).toBe('run done\n');
  expect(ended({ status: 'error', error: { code: 'hook', message: 'two\nlines' } })).toBe(
    'run ended in an error: two lines (hook)\n',
  );
  expect(ended({ status: 'interrupted' })).toBe('run interrupted\n');
});

test('a reply that failed shows what had come of it, and why it ended', () => {
  const message = reply('Hel', { stopReason: 'aborted', errorMessage: 'Request was aborted' });
  expect(render([words('Hel'), end(message)])).toBe('  Hel\n  ✗ Request was aborted\n');
});

test('text from outside cannot paint or move the terminal', () => {
  expect(harmless('a\u001b[31mb\r\nc\td\u0007\u009b')).toBe('a[31mb\nc\td');
  expect(oneLine('a\u001b\n  b', 10)).toBe('a b');
  expect(oneLine('😀😀😀', 2)).toBe('😀…');
  expect(render([words('\u001b]0;title\u0007x'), end(user('\u001b[2J'), 'u')])).toBe('  ]0;titlex\nuser [2J\n');
});

test('colours are for terminals alone, and not where NO_COLOR is set', () => {
  expect(wantsColour({ isTTY: true }, {})).toBe(true);
  expect(wantsColour({ isTTY: true }, { NO_COLOR: '1' })).toBe(false);
  expect(wantsColour({}, {})).toBe(false);
  expect(render([{ type: 'agent_start', runId: 'r' }], new Ink(true))).toBe('\u001b[1mrun r\u001b[22m\n');
});

test('usage says tokens, and the cost when there is one', () => {
  expect(usageText(noUsage)).toBe('0 tokens');
  expect(usageText({ ...noUsage, totalTokens: 12_345, cost: 0.01234 })).toBe('12,345 tokens, $0.0123');
  expect(usageText({ ...noUsage, totalTokens: 10, cost: 2 })).toBe('10 tokens, $2.00');
});

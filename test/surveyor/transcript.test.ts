import { describe, expect, test } from '@jest/globals';
import type { SessionEvent, UserMessage } from 'everturn';
import { wantsColour } from '../../examples/surveyor/transcript/ink.ts';
import { Transcript } from '../../examples/surveyor/transcript.ts';

const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

function assistant(text: string, more: object = {}) {
  return {
    role: 'assistant',
    content: [{ type: 'text', text }],
    api: 'a',
    provider: 'p',
    model: 'm',
    usage,
    stopReason: 'stop',
    timestamp: 0,
    ...more,
  };
}

function user(text: string): UserMessage {
  return { role: 'user', content: [{ type: 'text', text }], timestamp: 0 };
}

function words(entryId: string, delta: string, attempt = 1): SessionEvent {
  const message = assistant(delta);
  return {
    type: 'message_update',
    entryId,
    attempt,
    delta: { type: 'text_delta', contentIndex: 0, delta },
    message,
  } as SessionEvent;
}

function end(entryId: string, message: object): SessionEvent {
  return { type: 'message_end', entryId, message } as SessionEvent;
}

function toolEnd(text: string, more: object = {}): SessionEvent {
  const result = { content: [{ type: 'text', text }] };
  return {
    type: 'tool_execution_end',
    toolCallId: 'c',
    toolName: 'bash',
    result,
    isError: false,
    outcome: 'completed',
    ...more,
  } as SessionEvent;
}

function render(...events: SessionEvent[]): string {
  const transcript = new Transcript();
  return events.map((event) => transcript.render(event)).join('');
}

describe('a transcript', () => {
  test('tells a turn in the order of its events', () => {
    const text = render(
      { type: 'session_open', epoch: 1, agent: 'surveyor' },
      { type: 'agent_start' },
      end('p', user('Survey this')),
      { type: 'turn_start', turn: 0 },
      words('e', 'I lo'),
      words('e', 'ok.'),
      end('e', assistant('I look.', { stopReason: 'toolUse' })),
      { type: 'tool_execution_start', toolCallId: 'c', toolName: 'bash', args: { command: 'find .\n| wc -l' } },
      {
        type: 'tool_execution_update',
        toolCallId: 'c',
        toolName: 'bash',
        partialResult: { content: [{ type: 'text', text: '1\n2\n' }] },
      },
      {
        type: 'tool_execution_update',
        toolCallId: 'c',
        toolName: 'bash',
        partialResult: { content: [{ type: 'text', text: '3\n' }] },
      },
      toolEnd('1\n2\n3\n'),
      { type: 'agent_end', status: 'done', messages: [] },
    );
    expect(text.split('\n')).toEqual([
      'session opened, agent surveyor, epoch 1',
      'run started',
      'user Survey this',
      'turn 1',
      '  I look.',
      '  → bash find . | wc -l',
      '  · bash: 2',
      '  ← bash 1 (3 lines)',
      'run done',
      '',
    ]);
  });

  test('words appear as they come, without waiting for the end of the line', () => {
    const transcript = new Transcript();
    expect(transcript.render(words('e', 'Hel'))).toBe('  Hel');
    expect(transcript.render(words('e', 'lo\nyou'))).toBe('lo\n  you');
    expect(transcript.note('a note')).toBe('\na note\n');
  });

  test('a lost attempt is marked, and the next one begins on a line of its own', () => {
    const text = render(
      words('e', 'First try'),
      { type: 'message_reset', entryId: 'e', attempt: 2 },
      words('e', 'Second', 2),
      end('e', assistant('Second')),
    );
    expect(text).toBe('  First try\n  ↺ that reply was lost with its worker; attempt 2 begins it again\n  Second\n');
  });

  test('a reset before any word was shown says nothing', () => {
    expect(render({ type: 'message_reset', entryId: 'e', attempt: 1 })).toBe('');
  });

  test('a reader that missed the live words gets the stored text once', () => {
    expect(render(end('e', assistant('All of it')))).toBe('  All of it\n');
    expect(render(words('e', 'All '), end('e', assistant('All of it')))).toBe('  All of it\n');
    expect(render(words('e', 'of it'), end('e', assistant('All of it')))).toBe('  of it\n  All of it\n');
  });

  test('a reply without text leaves no empty line', () => {
    expect(render(end('e', { ...assistant(''), content: [] }))).toBe('');
  });

  test('an unknown outcome, an error and a result look different', () => {
    expect(render(toolEnd('42'))).toBe('  ← bash 42\n');
    expect(render(toolEnd('no', { isError: true, outcome: 'failed' }))).toBe('  ✗ bash no\n');
    expect(render(toolEnd('outcome unknown', { isError: true, outcome: 'unknown' }))).toBe(
      '  ? bash outcome unknown\n',
    );
  });

  test('a waiting message shows once, and again as a user message when it is taken up', () => {
    const tests = { id: 'm1', message: user('Add tests') };
    const why = { id: 'm2', message: user('Why?') };
    const text = render(
      { type: 'queue_update', steer: [tests], followUp: [], nextTurn: [] },
      { type: 'queue_update', steer: [tests], followUp: [why], nextTurn: [] },
      { type: 'queue_update', steer: [], followUp: [why], nextTurn: [] },
      end('m1', user('Add tests')),
      end('m2', user('Why?')),
    );
    expect(text.split('\n')).toEqual([
      '  steer waits: “Add tests”',
      '  followUp waits: “Why?”',
      'user (steer) Add tests',
      'user (followUp) Why?',
      '',
    ]);
  });

  test('a failed reply and a failed run say why', () => {
    const failed = assistant('', { stopReason: 'error', errorMessage: 'HTTP 529' });
    const runEnd: SessionEvent = {
      type: 'agent_end',
      status: 'error',
      error: { code: 'model_failed', message: 'gave up' },
      messages: [],
    };
    expect(render(end('e', failed), runEnd)).toBe('  ✗ HTTP 529\nrun ended, error: gave up (model_failed)\n');
  });

  test('long and several arguments stay on one line', () => {
    const args = { path: 'report.md', content: 'x\n'.repeat(2_000) };
    const line = render({ type: 'tool_execution_start', toolCallId: 'c', toolName: 'write', args });
    expect(line).toBe(`  → write path=report.md content=${`${'x '.repeat(19)}x…`} (4000 characters)\n`);
  });

  test('a result cannot paint the terminal', () => {
    expect(render(toolEnd('\u001b[2Jgone\u0007'))).toBe('  ← bash [2Jgone\n');
  });
});

describe('colour', () => {
  test('is used when it is asked for', () => {
    expect(new Transcript({ colour: true }).render({ type: 'agent_start' })).toBe('\u001b[1mrun started\u001b[22m\n');
  });

  test('is for terminals, unless NO_COLOR says otherwise', () => {
    expect(wantsColour({ isTTY: true }, {})).toBe(true);
    expect(wantsColour({ isTTY: true }, { NO_COLOR: '1' })).toBe(false);
    expect(wantsColour({}, {})).toBe(false);
  });
});

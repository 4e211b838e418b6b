import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

const entered = new Entered();
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness, entered) }),
    testAgent('impatient', { retry: { maxAttempts: 2, baseDelayMs: 20 } }),
    testAgent('stalling', { stallTimeoutMs: 150, retry: { maxAttempts: 2, baseDelayMs: 20 } }),
  ],
});

test('a permanent error ends the run with an assistant message that says it, and the session goes on', async () => {
  const replies = (request: { messages: unknown[] }) =>
    request.messages.length === 1 ? { error: '400 invalid_request: no', errorStatus: 400 } : { text: 'Better' };
  const talk = harness.talk('plain', replies);
  talk.accepted.push('Go', 'On');
  const result = await talk.session.run('Go', { runId: 'r1' });
  expect(result).toMatchObject({
    status: 'error',
    error: { code: 'model_failed', message: '400 invalid_request: no' },
    message: { stopReason: 'error', errorMessage: '400 invalid_request: no' },
    turns: 1,
  });
  expect(talk.requests).toHaveLength(1);
  expect(await talk.events('r1')).toEqual([
    ...['agent_start', 'turn_start', 'user: Go', 'assistant: ', 'turn_end', 'agent_end: error model_failed', 'settled'],
  ]);
  expect(await talk.session.run('On')).toMatchObject({ status: 'done', text: 'Better' });
});

test('a transient error is sent again after the Retry-After of the server, with the same messages', async () => {
  const talk = harness.talk('plain', [
    {
      text: 'At last',
      failTimes: 2,
      error: '429 rate limit',
      errorStatus: 429,
      errorHeaders: { 'retry-after-ms': '400' },
    },
  ]);
  expect(await talk.session.run('Go', { runId: 'r1' })).toMatchObject({ status: 'done', text: 'At last', turns: 1 });
  expect(talk.asked).toEqual([['user: Go'], ['user: Go'], ['user: Go']]);
  const [first, second, third] = talk.requests.map((request) => request.at);
  expect(second! - first!).toBeGreaterThanOrEqual(400);
  expect(third! - second!).toBeGreaterThanOrEqual(400);
  expect(await talk.events('r1')).toEqual([
    'agent_start',
    'turn_start',
    'user: Go',
    'assistant: At last',
    'turn_end',
    'agent_end: done',
    'settled',
  ]);
});

test('when the attempts are used up the run ends with the last error and their number', async () => {
  const talk = harness.talk('impatient', [{ error: '503 overloaded', errorStatus: 503 }]);
  expect(await talk.session.run('Go')).toMatchObject({
    status: 'error',
    error: { code: 'model_failed', message: '503 overloaded (2 attempts; the last one: overloaded)' },
  });
  expect(talk.requests).toHaveLength(2);
});

test('a provider that says nothing for stallTimeoutMs is asked again', async () => {
  const talk = harness.talk('stalling', [{ text: 'Awake', hangForever: true, failTimes: 1 }]);
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', text: 'Awake' });
  expect(talk.requests).toHaveLength(2);
});

test('a stream that breaks half-way is sent again, and live readers are told to forget what came', async () => {
  const talk = harness.talk('plain', [
    {
      text: 'Hello world',
      calls: [{ name: 'say' }],
      failTimes: 1,
      breakAfterChunks: 4,
      error: '503 overloaded',
      errorStatus: 503,
    },
    { text: 'Done' },
  ]);
  const reader = new AbortController();
  const seen: string[] = [];
  let shown = '';
  const reading = (async () => {
    for await (const event of talk.session.events({ signal: reader.signal })) {
      if (event.type === 'message_reset') shown = '';
      if (event.type === 'message_update' && event.delta.type === 'text_delta' && event.entryId === 'r1/0')
        shown += event.delta.delta;
      if (event.type === 'message_end' && event.entryId === 'r1/0') seen.push(shown);
      if (
        ['message_start', 'message_reset', 'message_end'].includes(event.type) &&
        'entryId' in event &&
        event.entryId === 'r1/0'
      )
        seen.push(event.type);
      if (event.type === 'settled') return;
    }
  })();
  await talk.session.run('Go', { runId: 'r1' });
  await reading;
  expect(seen).toEqual(['message_start', 'message_reset', 'Hello world', 'message_end']);
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0', 'leave call-0-0']);
});

test('an error after good tool work does not run the tool again, and the next prompt may go on', async () => {
  const replies = (request: { messages: { role: string }[] }) => {
    const roles = request.messages.map(({ role }) => role).join(' ');
    if (roles === 'user') return { calls: [{ name: 'say', args: { text: 'worked' } }] };
    return roles === 'user assistant toolResult'
      ? { error: '400 invalid_request', errorStatus: 400 }
      : { text: 'Fine' };
  };
  const talk = harness.talk('plain', replies);
  expect(await talk.session.run('Go')).toMatchObject({ status: 'error', turns: 2 });
  expect(await talk.session.run('On')).toMatchObject({ status: 'done', text: 'Fine' });
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0', 'leave call-0-0']);
  expect(talk.asked.at(-1)).toEqual([
    'user: Go',
    'assistant:  +say',
    'result of say: worked',
    'assistant: ',
    'user: On',
  ]);
});

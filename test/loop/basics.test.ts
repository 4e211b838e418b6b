import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness) }),
    testAgent('two-turns', { tools: loopTools(harness), maxTurns: 2 }),
    testAgent('described', {
      tools: loopTools(harness),
      activeTools: ['say'],
      thinkingLevel: 'low',
      streamOptions: { temperature: 0.3, maxTokens: 99, cacheRetention: 'none', metadata: { team: 'a' } },
      systemPrompt: ({ sessionId, model, thinkingLevel, activeTools }) =>
        `${sessionId} ${model} ${thinkingLevel} ${activeTools}`,
    }),
  ],
});

test('a run without tools is one turn', async () => {
  const talk = harness.talk('plain', [{ text: 'Hello', usage: { input: 10, output: 2, cost: 0.5 } }]);
  talk.accepted.push('Hi');
  const result = await talk.session.run('Hi', { runId: 'r1' });

  expect(result).toMatchObject({
    runId: 'r1',
    status: 'done',
    text: 'Hello',
    turns: 1,
    usage: { input: 10, output: 2, totalTokens: 12, cost: 0.5 },
  });
  expect(await talk.events()).toEqual([
    'session_open',
    ...['agent_start', 'turn_start', 'user: Hi', 'assistant: Hello', 'turn_end', 'agent_end: done', 'settled'],
  ]);
  expect(talk.requests).toMatchObject([
    {
      model: 'scripted/main',
      systemPrompt: 'You are under test.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    },
  ]);
  expect(talk.requests[0]?.messages).toHaveLength(1);
});

test('a run with a tool is two turns, and the model gets the result', async () => {
  const talk = harness.talk('plain', [
    { text: 'Let me see', calls: [{ name: 'say', args: { text: '3' } }] },
    { text: 'Three' },
  ]);
  talk.accepted.push('1 + 2?');
  await talk.session.run('1 + 2?', { runId: 'r1' });

  expect(await talk.events('r1')).toEqual([
    ...[
      'agent_start',
      'turn_start',
      'user: 1 + 2?',
      'assistant: Let me see +say',
      'start call-0-0',
      'end call-0-0: completed',
    ],
    ...[
      'result of say: 3',
      'turn_end call-0-0',
      'turn_start',
      'assistant: Three',
      'turn_end',
      'agent_end: done',
      'settled',
    ],
  ]);
  expect(talk.asked).toEqual([['user: 1 + 2?'], ['user: 1 + 2?', 'assistant: Let me see +say', 'result of say: 3']]);
  const events = await talk.raw();
  expect(events.find(({ type }) => type === 'tool_execution_start')).toMatchObject({
    toolName: 'say',
    args: { text: '3' },
    turn: 0,
  });
  expect(events.find(({ type }) => type === 'tool_execution_end')).toMatchObject({
    result: { content: [{ type: 'text', text: '3' }], details: {} },
    isError: false,
  });
  expect(events.find(({ type }) => type === 'turn_end')).toMatchObject({
    message: { role: 'assistant', stopReason: 'toolUse' },
    toolResults: [
      {
        role: 'toolResult',
        toolCallId: 'call-0-0',
        toolName: 'say',
        content: [{ type: 'text', text: '3' }],
        details: {},
        isError: false,
      },
    ],
    turn: 0,
  });
  const end = events.find((event) => event.type === 'agent_end');
  expect(end?.messages.map((message) => message.role)).toEqual(['user', 'assistant', 'toolResult', 'assistant']);
});

test('the next run goes on with the conversation, and usage adds up over runs', async () => {
  const usage = { input: 100, output: 10, cacheRead: 5, cacheWrite: 1, cost: 0.25 };
  const talk = harness.talk('plain', [
    { text: 'A', usage },
    { text: 'B', usage },
  ]);
  talk.accepted.push('one', 'two');
  await talk.session.run('one');
  const second = await talk.session.run('two');

  expect(talk.asked).toEqual([['user: one'], ['user: one', 'assistant: A', 'user: two']]);
  expect(second.usage).toEqual({ input: 100, output: 10, cacheRead: 5, cacheWrite: 1, totalTokens: 116, cost: 0.25 });
  expect(await talk.session.stats()).toMatchObject({
    turns: 2,
    usage: { input: 200, output: 20, cacheRead: 10, cacheWrite: 2, totalTokens: 232, cost: 0.5 },
  });
});

test('images stand after the text, in the transcript and for the model', async () => {
  const talk = harness.talk('plain', [{ text: 'A cat' }]);
  const image = { type: 'image' as const, data: 'aGVsbG8=', mimeType: 'image/png' };
  await talk.session.run('What is it?', { images: [image] });

  expect(talk.requests[0]?.messages[0]?.content).toEqual([{ type: 'text', text: 'What is it?' }, image]);
  const [entry] = await harness.store.readEntries(talk.sessionId, [`${(await talk.raw())[1]?.runId}/prompt`]);
  expect(entry).toMatchObject({
    type: 'message',
    message: { role: 'user', content: [{ type: 'text', text: 'What is it?' }, image] },
  });
});

test('a message of an own role stands in the transcript and is not sent to the model', async () => {
  const talk = harness.talk('plain', [{ text: 'Hello' }]);
  await talk.session.nextTurn({ role: 'note', text: 'the door opened', urgent: true });
  await talk.session.run('Hi', { runId: 'r1' });

  expect(talk.asked).toEqual([['user: Hi']]);
  expect(await talk.transcript()).toEqual(['note: ', 'user: Hi', 'assistant: Hello']);
  const events = await talk.raw();
  expect(events.find((event) => event.type === 'message_end')).toMatchObject({
    message: { role: 'note', text: 'the door opened', urgent: true },
  });
});

test('the model gets the system prompt, the active tools and the stream options of the agent', async () => {
  const talk = harness.talk('described', [{ text: 'Hello' }]);
  await talk.session.run('Hi');
  expect(talk.requests).toMatchObject([
    {
      systemPrompt: `${talk.sessionId} scripted/main low say`,
      tools: ['say'],
      options: {
        sessionId: talk.sessionId,
        reasoning: 'low',
        temperature: 0.3,
        maxTokens: 99,
        cacheRetention: 'none',
        metadata: { team: 'a' },
      },
    },
  ]);
});

test('thinking, text and calls of a reply are kept as they were', async () => {
  const talk = harness.talk('plain', [{ thinking: 'hmm', text: 'Well', calls: [{ name: 'say' }] }, { text: 'Done' }]);
  const { message } = await talk.session.run('Hi', { runId: 'r1' });
  expect(message).toMatchObject({
    role: 'assistant',
    content: [{ type: 'text', text: 'Done' }],
    stopReason: 'stop',
    model: 'main',
    provider: 'scripted',
  });
  expect(talk.requests[1]?.messages[1]).toMatchObject({
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'hmm' },
      { type: 'text', text: 'Well' },
      { type: 'toolCall', id: 'call-0-0', name: 'say', arguments: {} },
    ],
  });
});

test('a run ends with turn_limit after maxTurns turns, and the next prompt goes on', async () => {
  const more = { calls: [{ name: 'say' }] };
  const talk = harness.talk('two-turns', [more, more, { text: 'Done' }]);
  const result = await talk.session.run('Go', { runId: 'r1' });

  expect(result).toMatchObject({
    status: 'error',
    turns: 2,
    error: { code: 'turn_limit', message: expect.stringContaining('Prompt again') },
  });
  expect((await talk.events('r1')).slice(-3)).toEqual(['turn_end call-1-0', 'agent_end: error turn_limit', 'settled']);
  expect(await talk.session.run('Go on')).toMatchObject({ status: 'done', text: 'Done' });
  expect(talk.asked[2]).toEqual([
    'user: Go',
    'assistant:  +say',
    'result of say: ok',
    'assistant:  +say',
    'result of say: ok',
    'user: Go on',
  ]);
});

test('the last of maxTurns turns may be the end of the run, also while a message waits for the next prompt', async () => {
  const talk = harness.talk('two-turns', [
    { calls: [{ name: 'say', args: { at: 'tool' } }] },
    { text: 'Done' },
    { text: 'Next' },
  ]);
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('tool');
  await talk.session.nextTurn('later');
  talk.open('tool');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done', turns: 2 });
  expect(await talk.session.run('And?')).toMatchObject({ text: 'Next' });
  expect(talk.asked[2]?.slice(-2)).toEqual(['user: later', 'user: And?']);
});

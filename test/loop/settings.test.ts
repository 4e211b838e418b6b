import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

const entered = new Entered();
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness, entered) }),
    testAgent('gated', { tools: loopTools(harness, entered), beforeToolCall: () => undefined }),
    testAgent('breaking', {
      hookSettings: { transformContext: { attempts: 1 } },
      transformContext: async () => {
        await harness.gates.pass('transform');
        throw new Error('no');
      },
    }),
    testAgent('short', { tools: loopTools(harness, entered), lingerMs: 1 }),
  ],
});

test('changes in mid-run count from the next request, and their entries stand at the turn border', async () => {
  const talk = harness.talk('plain', [{ calls: [{ name: 'say', args: { at: 'tool' } }] }, { text: 'Done' }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('tool');
  await talk.session.setModel('scripted/other');
  await talk.session.setThinkingLevel('high');
  await talk.session.setActiveTools(['say', 'stop']);
  expect(await talk.session.status()).toMatchObject({
    model: 'scripted/other',
    thinkingLevel: 'high',
    activeTools: ['say', 'stop'],
  });
  talk.open('tool');
  await talk.session.result(runId);

  expect(
    talk.requests.map(({ model, tools, options }) => ({ model, tools: tools.length, reasoning: options.reasoning })),
  ).toEqual([
    { model: 'scripted/main', tools: 5, reasoning: undefined },
    { model: 'scripted/other', tools: 2, reasoning: 'high' },
  ]);
  expect((await talk.events(runId)).slice(6, 14)).toEqual([
    ...[
      'result of say: ok',
      'turn_end call-0-0',
      'entry model_change',
      'model_update',
      'entry thinking_level_change',
      'thinking_level_update',
    ],
    ...['entry active_tools_change', 'tools_update'],
  ]);
  const entries = (await talk.raw()).flatMap((event) => (event.type === 'entry' ? [event.entry] : []));
  expect(entries).toMatchObject([
    { provider: 'scripted', modelId: 'other' },
    { thinkingLevel: 'high' },
    { activeToolNames: ['say', 'stop'] },
  ]);
});

test('settings of an idle session are written at once, and a fresh workflow finds them', async () => {
  const talk = harness.talk('short', [{ text: 'A' }, { text: 'B' }]);
  await talk.session.run('one');
  await talk.closed();
  await talk.session.setModel('scripted/other');
  await talk.session.setThinkingLevel('minimal');
  await talk.session.setActiveTools([]);
  expect((await talk.events()).slice(-6)).toEqual([
    ...[
      'entry model_change',
      'model_update',
      'entry thinking_level_change',
      'thinking_level_update',
      'entry active_tools_change',
      'tools_update',
    ],
  ]);
  await talk.closed();
  expect(await talk.session.status()).toMatchObject({
    phase: 'idle',
    model: 'scripted/other',
    thinkingLevel: 'minimal',
    activeTools: [],
  });
  await talk.session.run('two');
  expect(talk.requests[1]).toMatchObject({ model: 'scripted/other', tools: [], options: { reasoning: 'minimal' } });
  await talk.session.setActiveTools(null);
  expect(await talk.session.status()).toMatchObject({ activeTools: null });
});

test('the options of a session count when it is new, and never again', async () => {
  const talk = harness.talk('short', [{ text: 'A' }, { text: 'B' }], {
    model: 'scripted/other',
    thinkingLevel: 'low',
    activeTools: ['say'],
  });
  await talk.session.run('one');
  await talk.closed();
  await talk.as({ agent: 'short', model: 'scripted/main', thinkingLevel: 'max' }).run('two');
  expect(talk.requests).toMatchObject([
    { model: 'scripted/other', tools: ['say'], options: { reasoning: 'low' } },
    { model: 'scripted/other', tools: ['say'], options: { reasoning: 'low' } },
  ]);
});

test.each(['plain', 'gated'])(
  'a tool that is not active is not found, even when the model calls it (%s)',
  async (agent) => {
    const talk = harness.talk(agent, [{ calls: [{ name: 'say' }, { name: 'stop' }] }, { text: 'Done' }], {
      activeTools: ['stop'],
    });
    await talk.session.run('Go');
    expect(talk.asked[1]?.slice(2)).toEqual(['result of say (error): Tool say not found', 'result of stop: ok']);
    expect(entered.of(talk.sessionId)).toEqual(['enter call-0-1', 'leave call-0-1']);
  },
);

test.each(['plain', 'gated'])(
  'a tool that is taken away while the model replies may still run: the model was offered it (%s)',
  async (agent) => {
    const talk = harness.talk(agent, [{ calls: [{ name: 'say' }], gate: 'model' }, { text: 'Done' }]);
    const { runId } = await talk.session.prompt('Go');
    await talk.reached('model');
    await talk.session.setActiveTools([]);
    talk.open('model');
    await talk.session.result(runId);
    expect(talk.asked[1]?.[2]).toBe('result of say: ok');
    expect(talk.requests[1]?.tools).toEqual([]);
  },
);

test('settings that cannot be are refused with a typed error, and nothing changes', async () => {
  const talk = harness.talk('plain', [{ text: 'A' }]);
  await talk.session.run('one');
  const before = await talk.events();
  await expect(talk.session.setModel('scripted/mian')).rejects.toMatchObject({
    code: 'unknown_model',
    message: expect.stringContaining('scripted/main'),
  });
  await expect(talk.session.setModel('nobody/x')).rejects.toMatchObject({ code: 'unknown_model' });
  await expect(talk.session.setModel('no slash')).rejects.toMatchObject({ code: 'invalid_argument' });
  await expect(talk.session.setThinkingLevel('extreme' as 'high')).rejects.toMatchObject({ code: 'invalid_argument' });
  await expect(talk.session.setActiveTools(['say', 'sya'])).rejects.toMatchObject({
    code: 'unknown_tool',
    message: expect.stringContaining('say'),
  });
  await expect(talk.session.setQueueMode('steer', 'some' as 'all')).rejects.toMatchObject({ code: 'invalid_argument' });
  expect(await talk.events()).toEqual(before);
  expect(await talk.session.status()).toMatchObject({
    model: 'scripted/main',
    thinkingLevel: 'off',
    activeTools: null,
  });
});

test('a turn whose hook throws ends in the name of the model that it was to ask, whatever was set meanwhile', async () => {
  const talk = harness.talk('breaking', []);
  const { runId } = await talk.session.prompt('Go');
  await harness.gates.reached('transform');
  await talk.session.setModel('scripted/other');
  harness.gates.open('transform');
  await expect(talk.session.result(runId)).rejects.toMatchObject({ code: 'hook' });
  const ends = (await talk.raw()).filter((event) => event.type === 'message_end');
  expect(ends.at(-1)?.message).toMatchObject({ stopReason: 'error', model: 'main' });
  expect(await talk.session.status()).toMatchObject({ model: 'scripted/other' });
});

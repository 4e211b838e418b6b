import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

const names = ['spied', 'stopping', 'switching', 'compacting', 'throwing', 'large'];
const harness: Harness = useHarness({
  agents: () =>
    names.map((name) =>
      testAgent(name, {
        tools: loopTools(harness),
        activeTools: ['say', 'stop', 'fail'],
        ...(name === 'large' ? { lingerMs: 1 } : {}),
      }),
    ),
});

const tool = { text: 'Look', calls: [{ name: 'say', args: { text: 'seen' } }] };

test('a policy sees the reply, its results, the context and what this run has added', async () => {
  const talk = harness.talk('spied', [
    { text: 'A' },
    {
      calls: [
        { name: 'say', args: { text: 's' } },
        { name: 'fail', args: { text: 'f' } },
      ],
      text: 'B',
    },
    { text: 'C' },
  ]);
  await talk.session.run('one');
  await talk.session.nextTurn('before');
  await talk.session.run('two');
  const seen = JSON.parse(talk.requests[2]?.systemPrompt ?? '') as object;
  const added = ['user: before', 'user: two', 'assistant: B', 'toolResult: s', 'toolResult: f'];
  expect(seen).toEqual({
    message: 'B',
    results: ['s', 'f'],
    systemPrompt: 'You are under test.',
    tools: ['say', 'stop', 'fail'],
    context: ['user: one', 'assistant: A', ...added],
    newMessages: added,
  });
  expect(talk.requests[1]?.systemPrompt).toBe('You are under test.');
});

test('shouldStopAfterTurn ends the run after turn_end, before prepareNextTurn and the queues', async () => {
  const talk = harness.talk('stopping', [
    { text: 'STOP SLOW', calls: [{ name: 'say', args: { at: 'tool' } }] },
    { text: 'B' },
    { text: 'C' },
  ]);
  talk.accepted.push('Go', 'steered', 'followed', 'On');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('tool');
  await talk.session.followUp('followed');
  await talk.session.steer('steered');
  await talk.logged((event) => event.type === 'queue_update' && event.steer.length === 1, 'both messages');
  talk.open('tool');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done', text: 'STOP SLOW', turns: 1 });
  expect((await talk.events(runId)).slice(-3)).toEqual(['turn_end call-0-0', 'agent_end: done', 'settled']);
  // They wait, visible, and do not open a run by themselves.
  expect(await talk.session.queues()).toMatchObject({
    steer: [{ content: [{ text: 'steered' }] }],
    followUp: [{ content: [{ text: 'followed' }] }],
  });
  expect(await talk.session.status()).toMatchObject({ phase: 'idle', model: 'scripted/main' });

  await talk.session.run('On');
  const begun = ['user: Go', 'assistant: STOP SLOW +say', 'result of say: ok', 'user: On', 'user: steered'];
  expect(talk.asked.slice(1)).toEqual([begun, [...begun, 'assistant: B', 'user: followed']]);
});

test('shouldStopAfterTurn may stop because of a tool result', async () => {
  const talk = harness.talk('stopping', [{ text: 'A', calls: [{ name: 'say', args: { text: 'STOP' } }] }]);
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', turns: 1 });
});

test.each([
  ['model', { model: 'scripted/other' }],
  ['model object', { model: 'scripted/other' }],
  ['thinking', { model: 'scripted/main', options: { reasoning: 'high' } }],
  ['tools', { model: 'scripted/main', tools: ['say'] }],
])('prepareNextTurn changes what comes next (%s), for this run alone', async (wish, next) => {
  const talk = harness.talk('switching', [tool, { text: 'B' }, { text: 'C' }]);
  await talk.session.run(wish);
  await talk.session.run('nothing');
  const first = { model: 'scripted/main', tools: ['say', 'stop', 'fail'] };
  expect(talk.requests).toMatchObject([first, next, first]);
  expect(talk.requests[2]?.options.reasoning).toBeUndefined();
  expect(await talk.session.status()).toMatchObject({
    model: 'scripted/main',
    thinkingLevel: 'off',
    activeTools: ['say', 'stop', 'fail'],
  });
});

test('a model that does not exist ends the run, and the next run has the model of the session', async () => {
  // The failed reply counts in the script.
  const talk = harness.talk('switching', [tool, {}, { text: 'B' }]);
  expect(await talk.session.run('unknown')).toMatchObject({ status: 'error', error: { code: 'unknown_model' } });
  expect(await talk.session.run('fine')).toMatchObject({ status: 'done', text: 'B' });
});

test('a context from prepareNextTurn replaces what the model sees, and the transcript stays', async () => {
  const talk = harness.talk('compacting', (request) => (request.messages.length > 3 ? { text: 'Done' } : tool));
  talk.checked = false;
  const { runId } = await talk.session.prompt('Go');
  await talk.logged((event) => event.type === 'turn_end' && event.turn === 2, 'three turns');
  await talk.session.abort(runId);
  const summary = 'user: 3 messages, true tokens';
  expect(talk.asked.slice(0, 3)).toEqual([['user: Go'], [summary], [summary]]);
  expect((await talk.transcript()).slice(0, 4)).toEqual([
    'user: Go',
    'assistant: Look +say',
    'result of say: seen',
    'assistant: Look +say',
  ]);
});

test.each([
  ['stop throws', 'shouldStopAfterTurn.*x is not a function'],
  ['prepare throws', 'prepareNextTurn.*out of ideas'],
  ['rejects', 'prepareNextTurn.*only a text'],
  ['a text', 'prepareNextTurn.*returned no object'],
  ['a wrong model', 'prepareNextTurn.*returned a model'],
  ['an empty model', 'prepareNextTurn.*returned a model'],
  ['a wrong level', 'prepareNextTurn.*unknown thinking level "extreme"'],
  ['a wrong context', 'prepareNextTurn.*returned a context'],
  ['a wrong message', 'prepareNextTurn.*returned a context'],
  ['wrong tools', 'prepareNextTurn.*returned a context'],
])('a policy that breaks (%s) ends the run with code policy, and the session goes on', async (wish, text) => {
  const talk = harness.talk('throwing', [tool, { text: 'B' }]);
  talk.accepted.push(wish, 'fine');
  await expect(talk.session.run(wish, { runId: 'r1' })).rejects.toMatchObject({
    code: 'policy',
    message: expect.stringMatching(new RegExp(text)),
    details: { agent: 'throwing', hook: expect.stringMatching(/shouldStop|prepareNext/) },
  });
  expect(await talk.events('r1')).toEqual([
    ...[
      'agent_start',
      'turn_start',
      `user: ${wish}`,
      'assistant: Look +say',
      'start call-0-0',
      'end call-0-0: completed',
      'result of say: seen',
    ],
    ...['turn_end call-0-0', 'agent_end: error policy', 'settled'],
  ]);
  expect(await talk.session.run('fine')).toMatchObject({ status: 'done', text: 'B' });
  expect(talk.asked[1]).toEqual([`user: ${wish}`, 'assistant: Look +say', 'result of say: seen', 'user: fine']);
});

test('with a policy a large context stays out of history', async () => {
  const talk = harness.talk('large', [{ text: 'A' }, tool, { text: 'C' }]);
  await talk.session.run('x'.repeat(300_000));
  await talk.closed();
  await talk.session.run('two');
  expect(talk.requests[2]).toMatchObject({ systemPrompt: 'large', messages: { length: 5 } });
  expect((await talk.session.stats()).historyBytes).toBeLessThan(40_000);
});

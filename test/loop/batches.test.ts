import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';
import { waitFor } from '../support/wait-for.ts';

const entered = new Entered();
const harness: Harness = useHarness({
  agents: () => [
    testAgent('parallel', { tools: loopTools(harness, entered) }),
    testAgent('sequential', { tools: loopTools(harness, entered), toolExecution: 'sequential' }),
  ],
});

const done = ['turn_start', 'assistant: Done', 'turn_end', 'agent_end: done', 'settled'];

test('a parallel batch: starts and immediate results in source order, ends as they come, messages in source order', async () => {
  const calls = [
    { id: 'a', name: 'say', args: { at: 'a', text: 'A' } },
    { id: 'x', name: 'nobody', args: {} },
    { id: 'b', name: 'say', args: { at: 'b', text: 'B' } },
    { id: 'y', name: 'say', args: { text: [1] } },
    { id: 'c', name: 'say', args: { at: 'c', text: 'C' } },
  ];
  const talk = harness.talk('parallel', [{ calls }, { text: 'Done' }]);
  const { runId } = await talk.session.prompt('Go');
  for (const gate of ['c', 'a', 'b']) {
    await talk.reached(gate);
    talk.open(gate);
    await talk.logged(
      (event) => event.type === 'tool_execution_end' && event.toolCallId === gate,
      `the end of ${gate}`,
    );
  }
  await talk.session.result(runId);

  const results = [
    'result of say: A',
    'result of nobody (error): Tool nobody not found',
    'result of say: B',
    expect.stringMatching(/^result of say \(error\): Validation failed for tool "say":/),
    'result of say: C',
  ];
  expect(await talk.events(runId)).toEqual([
    ...['agent_start', 'turn_start', 'user: Go', 'assistant:  +say +nobody +say +say +say'],
    ...['start a', 'start x', 'end x: not_found', 'start b', 'start y', 'end y: invalid_arguments', 'start c'],
    ...['end c: completed', 'end a: completed', 'end b: completed'],
    ...results,
    'turn_end a x b y c',
    ...done,
  ]);
  expect(talk.asked[1]).toEqual(['user: Go', 'assistant:  +say +nobody +say +say +say', ...results]);
  expect(entered.of(talk.sessionId).slice(0, 3).sort()).toEqual(['enter a', 'enter b', 'enter c']);
});

const inTurn = [
  ...[
    'start a',
    'end a: completed',
    'result of say: A',
    'start x',
    'end x: not_found',
    'result of nobody (error): Tool nobody not found',
  ],
  ...['start b', 'end b: completed', 'result of say: B', 'turn_end a x b'],
];

test('a sequential batch: start, end and result message of each call before the next one', async () => {
  const calls = [
    { id: 'a', name: 'say', args: { text: 'A' } },
    { id: 'x', name: 'nobody' },
    { id: 'b', name: 'say', args: { text: 'B' } },
  ];
  const talk = harness.talk('sequential', [{ calls }, { text: 'Done' }]);
  const { runId } = await talk.session.run('Go');
  expect(await talk.events(runId)).toEqual([
    'agent_start',
    'turn_start',
    'user: Go',
    'assistant:  +say +nobody +say',
    ...inTurn,
    ...done,
  ]);
  expect(entered.of(talk.sessionId)).toEqual(['enter a', 'leave a', 'enter b', 'leave b']);
});

test('one called tool with executionMode sequential makes its batch sequential', async () => {
  const calls = [
    { id: 'a', name: 'say', args: { text: 'A' } },
    { id: 'b', name: 'one_by_one', args: { text: 'B' } },
    { id: 'c', name: 'say', args: { text: 'C' } },
  ];
  const talk = harness.talk('parallel', [{ calls }, { text: 'Done' }]);
  const { runId } = await talk.session.run('Go');
  expect((await talk.events(runId)).slice(4, -5)).toEqual([
    ...['start a', 'end a: completed', 'result of say: A', 'start b', 'end b: completed', 'result of one_by_one: B'],
    ...['start c', 'end c: completed', 'result of say: C', 'turn_end a b c'],
  ]);
  expect(entered.of(talk.sessionId)).toEqual(['enter a', 'leave a', 'enter b', 'leave b', 'enter c', 'leave c']);
});

test('a run ends without another request when every call of a batch terminates', async () => {
  const talk = harness.talk('parallel', [
    { text: 'Bye', calls: [{ name: 'stop' }, { name: 'stop' }] },
    { text: 'again' },
  ]);
  const result = await talk.session.run('Go', { runId: 'r1' });
  expect(result).toMatchObject({ status: 'done', text: 'Bye', turns: 1 });
  expect((await talk.events('r1')).slice(-3)).toEqual(['turn_end call-0-0 call-0-1', 'agent_end: done', 'settled']);
  await talk.session.run('And?');
  expect(talk.asked).toEqual([
    ['user: Go'],
    ['user: Go', 'assistant: Bye +stop +stop', 'result of stop: ok', 'result of stop: ok', 'user: And?'],
  ]);
});

test.each([
  ['a call that does not ask for it', { name: 'say' }],
  ['a call of an unknown tool', { name: 'nobody' }],
  ['a call that throws', { name: 'fail' }],
])('a run goes on when a terminating call has beside it %s', async (_, other) => {
  const talk = harness.talk('parallel', [{ calls: [{ name: 'stop' }, other] }, { text: 'Done' }]);
  expect(await talk.session.run('Go')).toMatchObject({ text: 'Done', turns: 2 });
});

test('a terminated batch does not keep steering and follow-ups waiting', async () => {
  const stop = { calls: [{ name: 'stop', args: { at: 'stop' } }] };
  const talk = harness.talk('parallel', [stop, { text: 'One' }, { text: 'Two' }]);
  talk.accepted.push('Go', 'steered', 'followed');
  const { runId } = await talk.session.prompt('Go');
  await talk.reached('stop');
  await talk.session.followUp('followed');
  await talk.session.steer('steered');
  talk.open('stop');
  expect(await talk.session.result(runId)).toMatchObject({ text: 'Two', turns: 3 });
  const first = ['user: Go', 'assistant:  +stop', 'result of stop: ok', 'user: steered'];
  expect(talk.asked.slice(1)).toEqual([first, [...first, 'assistant: One', 'user: followed']]);
});

test('of more than 16 parallel calls 16 run at once, and the results stay in source order', async () => {
  const calls = Array.from({ length: 40 }, (_, index) => ({
    id: `c${index}`,
    name: 'say',
    args: { at: 'crowd', text: `${index}` },
  }));
  const talk = harness.talk('parallel', [{ calls, chunks: 1 }, { text: 'Done' }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.logged((event) => event.type === 'tool_execution_start' && event.toolCallId === 'c39', 'all starts');
  await talk.reached('crowd');
  const running = () => entered.of(talk.sessionId).length;
  await waitFor(() => running() === 16, { what: '16 calls' });
  // The seventeenth is not even scheduled: the workflow waits.
  const { pendingActivities = [] } = (await talk.workflow.describe()).raw as { pendingActivities?: unknown[] };
  expect({ running: running(), pending: pendingActivities?.length }).toEqual({ running: 16, pending: 16 });
  talk.open('crowd');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done', text: 'Done' });
  expect(talk.asked[1]?.slice(2)).toEqual(calls.map((call) => `result of say: ${call.args.text}`));
});

test('a reused call id does not confuse two calls', async () => {
  const twice = {
    calls: [
      { id: 'same', name: 'say', args: { text: 'A' } },
      { id: 'same', name: 'say', args: { text: 'B' } },
    ],
  };
  const talk = harness.talk('parallel', [
    twice,
    { calls: [{ id: 'same', name: 'say', args: { text: 'C' } }] },
    { text: 'Done' },
  ]);
  talk.checked = false;
  await talk.session.run('Go');
  expect(entered.of(talk.sessionId).filter((what) => what === 'enter same')).toHaveLength(3);
  expect((await talk.transcript()).filter((line) => line.startsWith('result'))).toEqual([
    'result of say: A',
    'result of say: B',
    'result of say: C',
  ]);
});

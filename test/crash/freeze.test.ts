import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CrashSession, CrashStage } from '../support/crash-stage.ts';
import { effectsLog } from '../support/crash-tools.ts';
import { holdCommitFile } from '../support/worker-process.ts';

// A worker sleeps right before it writes what it has, another takes over and ends the run, and then the first wakes up:
// it must see that it is not the owner any more (I9).

let stage: CrashStage;
let model: CrashSession;
let tool: CrashSession;
let aborted: CrashSession;
const logs = new Map<CrashSession, string[]>();

beforeAll(async () => {
  stage = await CrashStage.open();
  const sleeper = await stage.startWorker();
  model = stage.session('model', 'plain', [{ text: 'Hello world' }]);
  tool = stage.session('tool', 'plain', [{ calls: [{ name: 'effect_never' }] }, { text: 'Done' }]);
  aborted = stage.session('aborted', 'plain', [{ calls: [{ name: 'effect_never' }] }, {}, { text: 'Again' }]);
  const holds = new Map([
    [model, holdCommitFile('before', 'r1/t0/model')],
    [tool, holdCommitFile('before', 'r1/0/0/tool')],
    [aborted, holdCommitFile('before', 'r1/0/0/tool')],
  ]);
  for (const [session, hold] of holds) {
    session.evidence.put(hold, String(sleeper.pid));
    await session.prompt();
    await session.reached(`${hold}.waiting`);
  }
  await sleeper.freeze();
  await aborted.session.sendAbort('r1');
  await stage.startWorker();
  for (const session of holds.keys()) {
    expect(await session.ended('r1')).toMatch(session === aborted ? /^aborted: / : /^done: /);
    logs.set(session, await session.log());
  }
  for (const [session, hold] of holds) session.evidence.remove(hold);
  await sleeper.wake();
}, 120_000);

afterAll(() => stage?.end());

test('a worker that sleeps while another takes over cannot write its own reply', async () => {
  expect(await model.log()).toEqual(logs.get(model));
  expect(model.requests()).toHaveLength(2);
  expect(await model.transcript()).toEqual(['user: PROMPT', 'assistant: Hello world']);
  await model.check();
});

test('the result of a never tool that was given up is kept beside the transcript', async () => {
  expect(await tool.log()).toEqual(logs.get(tool));
  expect(tool.noted(effectsLog)).toEqual(['entered', 'done']);
  expect((await tool.transcript())[2]).toMatch(/^result of effect_never \(error\): Interrupted, outcome unknown/);
  expect(await tool.lateResult('r1/0', 0)).toMatchObject({
    result: { content: [{ type: 'text', text: 'effect_never done' }] },
  });
  await tool.check();
});

test('the result of a tool that an abort closed meanwhile is kept beside the transcript, and no later request has it', async () => {
  const closed = [
    'user: PROMPT',
    'assistant:  +effect_never',
    expect.stringMatching(/^result of effect_never \(error\): Operation aborted, outcome unknown/),
    'assistant: ',
  ];
  expect(await aborted.lateResult('r1/0', 0)).toMatchObject({
    result: { content: [{ type: 'text', text: 'effect_never done' }] },
  });
  expect(await aborted.log()).toEqual(logs.get(aborted));
  expect(await aborted.transcript()).toEqual(closed);
  await aborted.prompt('And now?');
  expect(await aborted.ended('r2')).toBe('done: Again');
  expect(aborted.asked(1)).toEqual([...closed, 'user: And now?']);
  await aborted.check();
});

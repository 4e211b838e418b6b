import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from '@jest/globals';
import { gateLog, holdGateFile } from '../support/crash-agent.ts';
import { type CrashStage, startCrashStage } from '../support/crash-stage.ts';
import { effectsLog, releaseFile } from '../support/crash-tools.ts';
import { startTemporalServer } from '../support/temporal-server.ts';
import { waitFor } from '../support/wait-for.ts';
import { holdCommitFile } from '../support/worker-process.ts';

let stage: CrashStage;

afterEach(() => stage?.end());

const twoTurns = (tool: string) => [
  ...['agent_start', 'turn_start', 'user', 'assistant', `start ${tool}`, `end ${tool}: completed`, 'toolResult', 'turn_end'],
  ...['turn_start', 'assistant', 'turn_end', 'agent_end: done', 'settled'],
];

function noted(log: string): unknown[] {
  return stage.evidence.read(log).map((line) => line.what);
}

describe('a worker killed in a gate', () => {
  test('asks the hook again, and the tool runs once', async () => {
    stage = await startCrashStage({ replies: [{ calls: [{ name: 'effect_never' }] }, { text: 'Done' }], hooks: ['gate'] });
    stage.evidence.put(holdGateFile);
    const first = await stage.startWorker();
    const { runId } = await stage.session.prompt('Do it');
    await stage.reached('call-0-0.at-gate');
    await first.kill9();
    stage.evidence.remove(holdGateFile);
    await stage.startWorker();

    expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Done' });
    expect(await stage.log(runId)).toEqual(twoTurns('effect_never'));
    expect(noted(gateLog)).toEqual(['asked', 'asked', 'passed']);
    expect(noted(effectsLog)).toEqual(['entered', 'done']);
    await stage.check(['Do it']);
  });

  test('does not ask again for a call that was decided', async () => {
    const calls = [{ name: 'effect_never' }, { name: 'throws' }];
    stage = await startCrashStage({ replies: [{ calls }, { text: 'Done' }], hooks: ['gate'] });
    const hold = holdCommitFile('before', 'r1/0/gate/0');
    stage.evidence.put(hold);
    const first = await stage.startWorker();
    const { runId } = await stage.session.prompt('Do it', { runId: 'r1' });
    await stage.reached(`${hold}.waiting`);
    await first.kill9();
    stage.evidence.remove(hold);
    await stage.startWorker();

    expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Done' });
    expect(noted(gateLog)).toEqual(['asked', 'passed', 'asked', 'passed']);
    expect(stage.asked(1).slice(2)).toEqual(['result of effect_never: effect_never done', 'result of throws (error): not this one']);
    expect(noted(effectsLog)).toEqual(['entered', 'done']);
    await stage.check(['Do it']);
  });
});

test('a worker killed between two effects is missed by nobody', async () => {
  const elsewhere = `elsewhere-${process.pid}`;
  stage = await startCrashStage({ replies: [{ calls: [{ name: 'effect_elsewhere' }] }, { text: 'Done' }], elsewhere });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it', { runId: 'r1' });
  // The reply is in the log, and the tool waits for a worker that does not exist yet.
  await waitFor(async () => (await stage.log(runId)).includes('start effect_elsewhere'), { what: 'the call' });
  await first.kill9();
  await Promise.all([stage.startWorker(), stage.startWorker(elsewhere)]);

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Done' });
  expect(await stage.log(runId)).toEqual(twoTurns('effect_elsewhere'));
  expect(noted(effectsLog)).toEqual(['entered', 'done']);
  expect(stage.requests()).toHaveLength(2);
  await stage.check(['Do it']);
});

test.each([
  { state: 'lingers', lingerMs: 60_000 },
  { state: 'has completed', lingerMs: 1 },
])('a worker killed while the session $state: the next prompt finds everything', async ({ lingerMs }) => {
  stage = await startCrashStage({ replies: [{ text: 'One' }, { text: 'Two' }], lingerMs });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('First');
  await stage.session.result(runId);
  if (lingerMs === 1) await stage.closed();
  await first.kill9();
  await stage.startWorker();
  const { runId: next } = await stage.session.prompt('Second');

  expect(await stage.session.result(next)).toMatchObject({ status: 'done', text: 'Two' });
  expect(stage.asked(1)).toEqual(['user: First', 'assistant: One', 'user: Second']);
  expect(await stage.log()).toEqual([
    'session_open',
    ...['agent_start', 'turn_start', 'user', 'assistant', 'turn_end', 'agent_end: done', 'settled'],
    ...(lingerMs === 1 ? ['session_open'] : []),
    ...['agent_start', 'turn_start', 'user', 'assistant', 'turn_end', 'agent_end: done', 'settled'],
  ]);
  await stage.check(['First', 'Second']);
});

test('a session whose workflow was terminated in a tool is closed honestly by the next prompt', async () => {
  const calls = [{ name: 'effect_never', args: { hold: true } }, { name: 'effect_safe' }];
  stage = await startCrashStage({ replies: [{ calls }, { text: 'Done' }] });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it', { runId: 'r1' });
  await stage.reached('call-0-0.holding');
  await stage.settled('r1/0', 1);
  await first.kill9();
  await stage.terminate();
  await stage.startWorker();
  const { runId: next } = await stage.session.prompt('And now?');

  expect(await stage.session.result(next)).toMatchObject({ status: 'done', text: 'Done' });
  expect(await stage.store.readRun(stage.sessionId, runId)).toMatchObject({ status: 'interrupted' });
  expect(stage.asked(1)).toEqual([
    ...['user: Do it', 'assistant:  +effect_never +effect_safe'],
    expect.stringMatching(/^result of effect_never \(error\): Interrupted, outcome unknown/),
    ...['result of effect_safe: effect_safe done', 'user: And now?'],
  ]);
  expect(noted(effectsLog).filter((what) => what === 'entered')).toHaveLength(2);
  await stage.check(['Do it', 'And now?']);
});

describe('the Temporal server killed and started again on its file', () => {
  test.each(['in a tool', 'while streaming'])('%s: the run goes on, and nothing is done twice', async (place) => {
    const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
    const dbFile = join(folder, 'temporal.db');
    const server = await startTemporalServer({ dbFile });
    const { address } = server;
    try {
      stage = await startCrashStage({
        address,
        replies: [
          { calls: [{ name: 'effect_never', args: { hold: place === 'in a tool' } }] },
          { text: 'Done', chunks: 2, holdAfterChunks: 1, ...(place === 'in a tool' ? {} : { holdUntilFile: 'go' }) },
        ],
      });
      await stage.startWorker();
      const { runId } = await stage.session.prompt('Do it');
      await stage.reached(place === 'in a tool' ? 'call-0-0.holding' : 'go.waiting');
      await server.kill();
      const again = await startTemporalServer({ dbFile, port: Number(address.split(':')[1]) });
      try {
        stage.evidence.put(releaseFile);
        stage.evidence.put('go');
        expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Done' });
        expect(await stage.log(runId)).toHaveLength(13);
        expect(noted(effectsLog)).toEqual(['entered', 'done']);
        await stage.check(['Do it']);
      } finally {
        await stage.end();
        await again.stop();
      }
    } finally {
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

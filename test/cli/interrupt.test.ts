import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { waitFor } from '../support/wait-for.ts';
import { type CliProcess, objects, Project } from './harness.ts';

let project: Project;
let worker: CliProcess;

beforeAll(async () => {
  project = new Project();
  worker = await project.startWorker();
});

afterAll(() => project.remove());

const untilHeld = (file: string) =>
  waitFor(() => existsSync(project.path(`${file}.waiting`)), { what: `${file}.waiting` });
const statusOf = async (sessionId: string) => (await (await project.openStore()).listRuns(sessionId)).at(-1)?.status;

test('the first Ctrl-C aborts the run and says so, and the exit code is 1', async () => {
  const run = project.start(['run', 'hold never1', '--agent', 'helper', '--session', 'aborted']);
  await run.until('Held');
  run.signal('SIGINT');
  const { code, stdout, stderr } = await run.ended;
  expect(code).toBe(1);
  expect(stderr).toBe('aborting the run; Ctrl-C once more leaves it\n');
  expect(stdout).toContain('\nrun aborted\n');
  expect(await statusOf('aborted')).toBe('aborted');
});

test('with --json the abort and the end are objects on stdout', async () => {
  const run = project.start(['run', 'hold never2', '--agent', 'helper', '--json']);
  await untilHeld('never2');
  run.signal('SIGINT');
  const { code, stdout, stderr } = await run.ended;
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
  const all = objects(stdout);
  expect(all).toContainEqual({ type: 'aborting', runId: all[0]?.runId });
  expect(all.at(-1)).toMatchObject({ type: 'result', status: 'aborted' });
});

test('a second Ctrl-C leaves a run that is still ending, and says how to look at it', async () => {
  // Its tool hears nothing of the abort, so the run needs its time to end.
  const run = project.start(['run', 'call never3', '--agent', 'helper', '--session', 'left']);
  await untilHeld('never3');
  run.signal('SIGINT');
  await run.until('aborting the run');
  run.signal('SIGINT');
  const { code, stderr } = await run.ended;
  expect(code).toBe(130);
  expect(stderr.split('\n').at(1)).toBe(
    'left; the run goes on without this terminal. Look at it: everturn show left --follow',
  );
  await waitFor(async () => (await statusOf('left')) === 'aborted', { what: 'the end of the abort' });
});

test('SIGTERM leaves the run and aborts nothing', async () => {
  const run = project.start(['run', 'hold gate4', '--agent', 'helper', '--session', 'hangup', '--json']);
  await untilHeld('gate4');
  run.signal('SIGTERM');
  const { code, stdout } = await run.ended;
  expect(code).toBe(143);
  expect(objects(stdout).at(-1)).toMatchObject({ type: 'left', sessionId: 'hangup', abortAsked: false });
  project.write('gate4', '');
  await waitFor(async () => (await statusOf('hangup')) === 'done', { what: 'the end of the run' });
});

test('abort ends the run that is going on, and tells what was not delivered', async () => {
  const shown = project.start(['run', 'hold never5', '--agent', 'helper', '--session', 'stop', '--run-id', 'r1']);
  await untilHeld('never5');
  await project.run(['follow-up', 'stop', 'and then']);
  await shown.until('follow-up waits');
  const { code, stdout } = await project.run(['abort', 'stop']);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'run r1: aborted\nnot delivered: “and then”\n' });
  const ended = await shown.ended;
  expect(ended.code).toBe(1);
  expect(ended.stdout).toContain('not delivered: “and then”');
});

test('abort of a run that has ended, or where none is, changes nothing', async () => {
  await project.run(['run', 'hello', '--agent', 'helper', '--session', 'over', '--run-id', 'r1']);
  expect(await project.run(['abort', 'over'])).toEqual({ code: 0, stdout: 'no run is going on\n', stderr: '' });
  const named = await project.run(['abort', 'over', '--run', 'r1', '--json']);
  expect(objects(named.stdout)).toEqual([
    { sessionId: 'over', runId: 'r1', status: 'done', clearedSteer: [], clearedFollowUp: [] },
  ]);
  const unknown = await project.run(['abort', 'over', '--run', 'r2', '--json']);
  expect(unknown.code).toBe(2);
  expect(JSON.parse(unknown.stderr)).toEqual({
    error: {
      code: 'not_found',
      message: 'Session "over" has no run "r2".',
      details: { sessionId: 'over', runId: 'r2' },
    },
  });
});

// The last test: it takes the worker away.
test('an abort without a worker is noted, and the next worker carries it out', async () => {
  const run = project.start(['run', 'hold never6', '--agent', 'helper', '--session', 'orphan', '--run-id', 'r1']);
  await untilHeld('never6');
  worker.signal('SIGKILL');
  await worker.ended;
  const { code, stderr } = await project.run(['abort', 'orphan', '--wait', '1', '--json']);
  expect(code).toBe(2);
  expect(JSON.parse(stderr)).toMatchObject({
    error: { code: 'no_worker', details: { sessionId: 'orphan', runId: 'r1' } },
  });
  await project.startWorker();
  expect(await run.ended).toMatchObject({ code: 1, stdout: expect.stringContaining('run aborted') });
});

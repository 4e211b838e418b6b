import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { waitFor } from '../support/wait-for.ts';
import { agentsSource, objects, Project } from './harness.ts';

let project: Project;

beforeEach(() => {
  project = new Project();
});

afterEach(() => project.remove());

test('SIGTERM lets a running tool come to its end, and the exit code is 0', async () => {
  const worker = await project.startWorker();
  await project.run(['run', 'call gate', '--agent', 'helper', '--session', 's', '--detach']);
  await waitFor(() => existsSync(project.path('gate.waiting')), { what: 'the tool' });
  worker.signal('SIGTERM');
  await worker.until('ending: running tools get a few seconds');
  project.write('gate', '');
  const { code, stdout, stderr } = await worker.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(/\nended\n$/);
  const events = objects((await project.run(['show', 's', '--json'])).stdout);
  expect(events).toContainEqual(expect.objectContaining({ type: 'tool_execution_end', outcome: 'completed' }));
});

test('a second signal ends a worker at once, and the next worker goes on with the run', async () => {
  const worker = await project.startWorker();
  const run = project.start(['run', 'call gate', '--agent', 'helper']);
  await waitFor(() => existsSync(project.path('gate.waiting')), { what: 'the tool' });
  worker.signal('SIGINT');
  await worker.until('ending');
  worker.signal('SIGINT');
  expect((await worker.ended).code).toBe(130);
  project.write('gate', '');
  await project.startWorker();
  expect(await run.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('The tool says it came.') });
});

test('bare "everturn worker" takes its file, workflows, store and task queue from the environment', async () => {
  project.write('mine.mjs', agentsSource.replaceAll(/: \{ (a: number; b: number|file: string) \}\)/g, ')'));
  project.write(
    'my-workflows.ts',
    `export * from 'everturn/workflows';
     import { definePolicy } from 'everturn/workflows';
     definePolicy('second', { shouldStopAfterTurn: () => true });`,
  );
  const worker = project.start(['worker', '--json'], {
    EVERTURN_AGENTS: 'mine.mjs',
    EVERTURN_WORKFLOWS: 'my-workflows.ts',
  });
  await worker.until('"ready"');
  expect(objects(worker.stdout)).toEqual([
    {
      type: 'ready',
      pid: worker.child.pid,
      agents: ['helper', 'second'],
      store: project.store,
      taskQueue: project.env.EVERTURN_TASK_QUEUE,
      address: project.env.TEMPORAL_ADDRESS,
      namespace: 'default',
    },
  ]);
  expect((await project.run(['run', 'hello', '--agent', 'second'])).code).toBe(0);
  worker.signal('SIGTERM');
  const { code, stdout } = await worker.ended;
  expect(code).toBe(0);
  expect(objects(stdout).map((object) => object.type)).toEqual(['ready', 'ending', 'ended']);
});

test('without any agents file a worker says what to write', async () => {
  const { code, stderr } = await project.run(['worker']);
  expect(code).toBe(2);
  expect(stderr).toMatch(
    /^everturn: There is no agents file: .*Write everturn\.agents\.ts: import \{ defineAgent \} from 'everturn'.*\n$/,
  );
});

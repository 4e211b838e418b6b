import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { waitFor } from '../support/wait-for.ts';
import { agentsSource, type CliProcess, objects, Project } from './harness.ts';

let project: Project;
let port: number;

beforeEach(async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  port = (probe.address() as { port: number }).port;
  probe.close();
  await once(probe, 'close');
  // As on a machine where nothing is set: the store is found in the folder.
  project = new Project({ TEMPORAL_ADDRESS: '', EVERTURN_STORE: '', EVERTURN_TASK_QUEUE: '' });
  project.write('everturn.agents.ts', agentsSource);
});

afterEach(() => project.remove());

async function startDev(...args: string[]): Promise<CliProcess> {
  const dev = project.start(['dev', '--port', String(port), ...args]);
  await dev.until(args.includes('--json') ? '"ready"' : 'Ctrl-C ends');
  return dev;
}

/** Command lines of processes that work in the project's folder or guard one that did. */
function leftovers(serverPid: unknown): string[] {
  const marks = [project.folder, `--port ${port}`, `kill -TERM ${serverPid}`];
  return commandLines().filter((line) => marks.some((mark) => line.includes(mark)));
}

function commandLines(): string[] {
  if (!existsSync('/proc/self/cmdline'))
    return spawnSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).stdout.split('\n');
  return globSync('/proc/[0-9]*/cmdline').flatMap((file) => {
    try {
      return readFileSync(file, 'utf8').replaceAll('\0', ' ');
    } catch {
      // It ended meanwhile.
      return [];
    }
  });
}

test('dev starts a server and a worker, says so line by line, and Ctrl-C ends all of it', async () => {
  const dev = await startDev();
  const here = { TEMPORAL_ADDRESS: `127.0.0.1:${port}` };
  const run = await project.run(['run', 'add', '--agent', 'helper', '--session', 's'], here);
  expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining('The tool says 3.') });
  dev.signal('SIGINT');
  const { code, stdout, stderr } = await dev.ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout.split('\n')).toEqual([
    `starting a Temporal server on 127.0.0.1:${port}, its file is .everturn/temporal.db`,
    `worker ${dev.child.pid} is ready: helper, second (everturn.agents.ts)`,
    `task queue "everturn" of 127.0.0.1:${port}, store ./.everturn/store`,
    `try, in another terminal: everturn run "hello" --agent helper --address 127.0.0.1:${port}`,
    'Ctrl-C ends server and worker',
    expect.stringMatching(/^ending/),
    'ended',
    '',
  ]);
  await waitFor(() => leftovers('none').length === 0, { what: 'the end of every process' });
});

test('a run that dev leaves behind goes on with the next dev, on the same files', async () => {
  const first = await startDev('--json');
  const server = objects(first.stdout).find((object) => object.type === 'server');
  expect(server).toMatchObject({ address: `127.0.0.1:${port}`, dbFile: '.everturn/temporal.db', uiUrl: null });
  const here = { TEMPORAL_ADDRESS: `127.0.0.1:${port}` };
  await project.run(['run', 'hold gate', '--agent', 'helper', '--session', 's', '--detach'], here);
  await waitFor(() => existsSync(project.path('gate.waiting')), { what: 'the reply' });
  first.signal('SIGTERM');
  expect((await first.ended).code).toBe(0);
  await waitFor(() => leftovers(server?.pid).length === 0, { what: 'the end of every process' });
  project.write('gate', '');
  const next = await startDev('--json');
  const follower = project.start(['show', 's', '--follow']);
  await follower.until('run done');
  expect(follower.stdout).toContain('Held words.');
  next.signal('SIGTERM');
  expect((await next.ended).code).toBe(0);
});

test('kill -9 of dev leaves no server behind', async () => {
  const dev = await startDev('--json', '--db', 'mine.db');
  const server = objects(dev.stdout).find((object) => object.type === 'server');
  expect(existsSync(project.path('mine.db'))).toBe(true);
  dev.signal('SIGKILL');
  await dev.ended;
  await waitFor(() => leftovers(server?.pid).length === 0, { what: 'the end of every process' });
});

test('Ctrl-C while the server starts ends it too', async () => {
  const dev = project.start(['dev', '--port', String(port)]);
  await dev.until('starting a Temporal server');
  dev.signal('SIGINT');
  expect(await dev.ended).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/\nended\n$/) });
  expect(leftovers('none')).toEqual([]);
});

test('dev uses the server that TEMPORAL_ADDRESS names, and leaves it running', async () => {
  const address = process.env.EVERTURN_TEST_TEMPORAL ?? '';
  const dev = project.start(['dev', '--task-queue', `dev-${port}`], { TEMPORAL_ADDRESS: address });
  await dev.until('Ctrl-C ends');
  expect(dev.stdout).toContain(`using the Temporal server at ${address} (TEMPORAL_ADDRESS)`);
  dev.signal('SIGINT');
  expect((await dev.ended).code).toBe(0);
  const again = await project.run(['sessions']);
  expect(again).toEqual({ code: 0, stdout: 'no sessions in ./.everturn/store\n', stderr: '' });
});

test('a port that is taken, and a server that is not there, are named in one line', async () => {
  const taken = process.env.EVERTURN_TEST_TEMPORAL?.split(':')[1] ?? '';
  const [first, second] = await Promise.all([
    project.run(['dev', '--port', taken]),
    project.run(['dev'], { TEMPORAL_ADDRESS: '127.0.0.1:1' }),
  ]);
  expect(first).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(new RegExp(`^everturn: Port ${taken} is taken.*\\n$`)),
  });
  expect(second).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /^everturn: No Temporal server answers at 127\.0\.0\.1:1 .*unset TEMPORAL_ADDRESS.*\n$/,
    ),
  });
});

test('without an agents file dev says what to write, and starts nothing', async () => {
  const { code, stdout, stderr } = await project.run(['dev', '--agents', 'none.ts']);
  expect({ code, stdout, stderr }).toEqual({
    code: 2,
    stdout: '',
    stderr: 'everturn: There is no agents file none.ts.\n',
  });
});

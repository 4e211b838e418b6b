import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Client, Connection } from '@temporalio/client';
import { startDevServer } from '../src/cli/dev-server.ts';
import { startTemporalServer } from './support/temporal-server.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'everturn-dev-server-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function answers(address: string): Promise<boolean> {
  const [host, port] = address.trim().split(':');
  const socket = connect({ host: host ?? '', port: Number(port) });
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function untilGone(address: string): Promise<void> {
  for (const deadline = Date.now() + 20_000; await answers(address); ) {
    if (Date.now() > deadline) throw new Error(`the server at ${address} is still there`);
    await delay(20);
  }
}

/** A process that starts a dev server, tells its address and then does what `after` says. */
async function owner(after: string): Promise<{ process: ChildProcess; server: string }> {
  const module = fileURLToPath(new URL('../src/cli/dev-server.ts', import.meta.url));
  const program = `import { startDevServer } from ${JSON.stringify(module)};
    console.log((await startDevServer()).address);
    ${after}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [address] = await once(child.stdout, 'data');
  return { process: child, server: String(address) };
}

test('a workflow outlives a kill of the server that keeps it in a file', async () => {
  const dbFile = join(folder, 'temporal.db');
  const first = await startTemporalServer({ dbFile });
  const connection = await Connection.connect({ address: first.address });
  const workflow = { taskQueue: 'nobody', workflowId: 'waiting' };
  await new Client({ connection }).workflow.start('anything', workflow);
  await connection.close();
  await first.kill();
  expect(await answers(first.address)).toBe(false);

  const second = await startTemporalServer({ dbFile, port: Number(first.address.split(':')[1]) });
  expect(second.address).toBe(first.address);
  const again = await Connection.connect({ address: second.address });
  const { status } = await new Client({ connection: again }).workflow.getHandle('waiting').describe();
  expect(status.name).toBe('RUNNING');
  await again.close();
  await second.stop();
  await second.stop();
  expect(await answers(second.address)).toBe(false);
});

test.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)('the server ends when its owner gets %s', async (signal) => {
  const { process: child, server } = await owner('setInterval(() => undefined, 1000);');
  expect(await answers(server)).toBe(true);
  child.kill(signal);
  await untilGone(server);
});

test('the server neither keeps its owner alive nor outlives it', async () => {
  const { process: child, server } = await owner('');
  if (child.exitCode === null) await once(child, 'exit');
  expect(child.exitCode).toBe(0);
  await untilGone(server);
});

test('a port that is taken is named', async () => {
  const port = Number(process.env.EVERTURN_TEST_TEMPORAL?.split(':')[1]);
  await expect(startDevServer({ port })).rejects.toMatchObject({
    code: 'temporal_unavailable',
    message: expect.stringContaining(`Port ${port} is taken`),
  });
});

test('a binary that does not start a server is named, with what it printed', async () => {
  await expect(startDevServer({ binary: join(folder, 'temporal') })).rejects.toMatchObject({
    code: 'temporal_unavailable',
    message: expect.stringMatching(/everturn-dev-server-\w+.temporal did not start: .*spawn .* ENOENT/),
  });
  await expect(startDevServer({ binary: process.execPath })).rejects.toThrow(
    /it ended with code 1\.\n.*Cannot find module/s,
  );
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { AgentClient } from '../../src/client/index.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { Evidence } from '../support/evidence.ts';
import { expectInvariants } from '../support/invariants.ts';
import { waitFor } from '../support/wait-for.ts';

// A worker that is killed inside of a hook, for each hook that runs in a worker: one kill for all of their sessions.

const hooksLog = 'hooks.log';
const hooks = [
  ...[
    'before_agent_start',
    'getSteeringMessages',
    'before_provider_request',
    'transformContext',
    'context',
    'convertToLlm',
  ],
  ...['before_provider_payload', 'beforeToolCall', 'tool_call', 'afterToolCall', 'tool_result', 'getFollowUpMessages'],
];
/** In the order in which they are asked first. */
const request = ['before_provider_request', 'transformContext', 'context', 'convertToLlm', 'before_provider_payload'];
const order = [
  ...['before_agent_start', 'getSteeringMessages', ...request],
  ...['beforeToolCall', 'tool_call', 'afterToolCall', 'tool_result', 'getSteeringMessages'],
  ...[...request, 'getSteeringMessages', 'getFollowUpMessages'],
];

let folder: string;
let root: Evidence;
let store: Store;
let client: AgentClient;
const workers: ChildProcess[] = [];
const taskQueue = `dying-${process.pid}`;
const address = process.env.EVERTURN_TEST_TEMPORAL ?? '';

async function startWorker(): Promise<ChildProcess> {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const config = { address, taskQueue, folder, store: join(folder, 'store'), bundle: process.env.EVERTURN_TEST_BUNDLE };
  const main = fileURLToPath(new URL('./dying-worker.ts', import.meta.url));
  const worker = spawn(
    process.execPath,
    ['--conditions=everturn-source', '--disable-warning=ExperimentalWarning', main],
    {
      env: { ...env, EVERTURN_TEST_WORKER: JSON.stringify(config) },
      stdio: ['ignore', 'ignore', process.env.EVERTURN_LOG ? 'inherit' : 'ignore', 'ipc'],
    },
  );
  workers.push(worker);
  const [word] = (await Promise.race([once(worker, 'message'), once(worker, 'exit')])) as unknown[];
  if (word !== 'ready') throw new Error('The worker process ended at its start; EVERTURN_LOG=1 shows why.');
  return worker;
}

async function kill9(worker: ChildProcess): Promise<void> {
  if (worker.exitCode !== null || worker.signalCode !== null) return;
  worker.kill('SIGKILL');
  await once(worker, 'exit');
}

const sessionOf = (hook: string) => `${taskQueue}-${hook}`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  root = new Evidence(folder);
  store = await openStore({ path: join(folder, 'store') });
  client = await AgentClient.connect({ address, store, taskQueue });
  const worker = await startWorker();
  for (const hook of hooks) {
    root.of(sessionOf(hook)).put(`hold-${hook}`);
    await client.session(sessionOf(hook), { agent: 'dying' }).prompt(`Go ${hook}`, { runId: 'r' });
  }
  for (const hook of hooks)
    await waitFor(() => root.of(sessionOf(hook)).has(`hold-${hook}.held`), { what: `the hold in ${hook}` });
  await kill9(worker);
  for (const hook of hooks) root.of(sessionOf(hook)).remove(`hold-${hook}`);
  await startWorker();
});

afterAll(async () => {
  await Promise.all(workers.map(kill9));
  await client?.close();
  await store?.close();
  await rm(folder, { recursive: true, force: true });
});

const resultHooks = ['afterToolCall', 'tool_result'];

test.each(hooks.filter((hook) => !resultHooks.includes(hook)))(
  'a worker killed inside of %s: that hook is asked once more, no other one, and the tool was entered once',
  async (hook) => {
    const session = client.session(sessionOf(hook), { agent: 'dying' });
    expect(await session.result('r')).toMatchObject({ status: 'done', text: 'Done', turns: 2 });
    const evidence = root.of(sessionOf(hook));
    const asked = evidence.read(hooksLog).map((line) => line.hook);
    const at = order.indexOf(hook);
    expect(asked).toEqual(order.toSpliced(at, 0, hook));
    expect(evidence.read('tool.log')).toHaveLength(1);
    const told = (await Array.fromAsync(session.events({ follow: false }))).flatMap((event) =>
      event.type === 'hook' ? [event.hook] : [],
    );
    expect(told.toSorted()).toEqual(order.toSorted());
    await expectInvariants({ store, sessionId: sessionOf(hook), requests: [], accepted: [`Go ${hook}`] });
  },
);

test.each(resultHooks)(
  'a worker killed inside of %s has lost the result: the model is told that the outcome is unknown, the tool was entered once',
  async (hook) => {
    const session = client.session(sessionOf(hook), { agent: 'dying' });
    expect(await session.result('r')).toMatchObject({ status: 'done', text: 'Done', turns: 2 });
    const evidence = root.of(sessionOf(hook));
    // The result was only in that worker: nothing that a later hook may take out of it had reached the disk.
    const behind = hook === 'afterToolCall' ? ['tool_result'] : [];
    const asked = evidence.read(hooksLog).map((line) => line.hook);
    expect(asked).toEqual(order.filter((name) => !behind.includes(name)));
    expect(evidence.read('tool.log')).toHaveLength(1);
    const ends = (await Array.fromAsync(session.events({ follow: false }))).flatMap((event) =>
      event.type === 'tool_execution_end' ? [event.outcome] : [],
    );
    expect(ends).toEqual(['unknown']);
    await expectInvariants({ store, sessionId: sessionOf(hook), requests: [], accepted: [`Go ${hook}`] });
  },
);

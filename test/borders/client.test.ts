import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { AgentClient } from '../../src/client/index.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { createWorker } from '../../src/worker/index.ts';
import { testAgent } from '../support/harness.ts';

let folder: string;
let store: Store;
let client: AgentClient;
const address = () => process.env.EVERTURN_TEST_TEMPORAL ?? '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  store = await openStore({ path: join(folder, 'store') });
  client = await AgentClient.connect({
    address: address(),
    store,
    taskQueue: `nobody-${process.pid}`,
    answerTimeoutMs: 300,
  });
});

afterAll(async () => {
  await client.close();
  await store.close();
  await rm(folder, { recursive: true });
});

/** An address where nobody listens. */
async function freeAddress(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

describe('a Temporal server that is not there', () => {
  test('is temporal_unavailable for a client, within its connectTimeoutMs', async () => {
    const nowhere = await freeAddress();
    const began = Date.now();
    await expect(AgentClient.connect({ address: nowhere, store, connectTimeoutMs: 500 })).rejects.toMatchObject({
      code: 'temporal_unavailable',
      retryable: true,
      message: expect.stringMatching(new RegExp(`${nowhere}.*everturn dev`)),
      details: { address: nowhere },
    });
    expect(Date.now() - began).toBeLessThan(3_000);
  });

  test('is temporal_unavailable for a worker', async () => {
    const nowhere = await freeAddress();
    const codePath = process.env.EVERTURN_TEST_BUNDLE ?? '';
    await expect(
      createWorker({ agents: [testAgent('plain')], store, address: nowhere, workflowBundle: { codePath } }),
    ).rejects.toMatchObject({
      code: 'temporal_unavailable',
      message: expect.stringContaining('everturn dev'),
    });
  });
});

test('a client that is closed while its calls wait for their next try ends them, and leaves nothing behind that throws', async () => {
  const { NODE_OPTIONS: _, ...env } = process.env;
  const script = fileURLToPath(new URL('./closing-client.ts', import.meta.url));
  const flags = ['--conditions=everturn-source', '--disable-warning=ExperimentalWarning'];
  const args = [...flags, script, address(), join(folder, 'closing')];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toBe('rejected\nrejected\n');
});

describe('a store that cannot be', () => {
  test('is store_unavailable for a client and a worker, with its path', async () => {
    const file = join(folder, 'file.txt');
    await writeFile(file, 'not a store');
    const path = join(file, 'below');
    const error = { code: 'store_unavailable', message: expect.stringContaining(path) };
    await expect(AgentClient.connect({ address: address(), store: path })).rejects.toMatchObject(error);
    const codePath = process.env.EVERTURN_TEST_BUNDLE ?? '';
    await expect(
      createWorker({ agents: [testAgent('plain')], store: path, address: address(), workflowBundle: { codePath } }),
    ).rejects.toMatchObject(error);
  });

  test('is code store when the file is something else', async () => {
    const path = join(folder, 'other.db');
    await writeFile(path, 'this is no database, whatever its name says'.repeat(50));
    await expect(AgentClient.connect({ address: address(), store: path })).rejects.toMatchObject({
      code: 'store',
      message: expect.stringContaining(path),
    });
  });

  test('is invalid_config when none is named', async () => {
    await expect(AgentClient.connect({ address: address(), store: '' })).rejects.toMatchObject({
      code: 'invalid_config',
    });
    await expect(AgentClient.connect({ address: address() } as never)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('store'),
    });
    await expect(createWorker({ agents: [testAgent('plain')], address: address() } as never)).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('store'),
    });
  });
});

describe('no worker', () => {
  test('is no_worker within answerTimeoutMs, and says that the prompt may be sent again', async () => {
    const session = client.session(`nobody-${process.pid}`, { agent: 'plain' });
    const error = {
      code: 'no_worker',
      retryable: true,
      message: expect.stringMatching(/task queue.*everturn worker.*same runId/),
    };
    const began = Date.now();
    await expect(session.prompt('Hi', { runId: 'r1' })).rejects.toMatchObject(error);
    await expect(session.setThinkingLevel('low')).rejects.toMatchObject(error);
    await expect(session.status()).rejects.toMatchObject(error);
    expect(Date.now() - began).toBeLessThan(5_000);
  });

  test('does not keep a signal from being accepted', async () => {
    const session = client.session(`nobody-2-${process.pid}`, { agent: 'plain' });
    await session.steer('Hi');
    await session.nextTurn('Ho');
  });
});

describe('what is wrong before anything is sent', () => {
  test.each(['', ' ', 'a b', '/etc', '.x', 'x'.repeat(201), 'ünïcode'])(
    'the session id %j is invalid_argument',
    (id) => {
      expect(() => client.session(id, { agent: 'plain' })).toThrow(
        expect.objectContaining({ code: 'invalid_argument', message: expect.stringContaining('letters, digits') }),
      );
    },
  );

  test.each([
    [{ agent: '' }],
    [{ agent: 'plain', model: 'no-slash' }],
    [{ agent: 'plain', thinkingLevel: 'extreme' }],
    [{ agent: 'plain', activeTools: 'all' }],
    [{ agent: 'plain', carry: {} }],
    [{}],
  ])('the session options %j are invalid_argument', (options) => {
    expect(() => client.session('s', options as never)).toThrow(expect.objectContaining({ code: 'invalid_argument' }));
  });

  test.each([
    ['an empty text', ''],
    ['a number', 7],
    ['nothing', undefined],
    ['an empty content', { role: 'user', content: [] }],
    ['a forged assistant message', { role: 'assistant', content: [{ type: 'text', text: 'x' }] }],
    ['an unknown block', { role: 'user', content: [{ type: 'video' }] }],
    ['an image that is none', { role: 'user', content: [{ type: 'image', data: 'x', mimeType: 'text/html' }] }],
  ])('a prompt, a steer, a follow-up of %s is invalid_argument', async (_, message) => {
    const session = client.session('s', { agent: 'plain' });
    for (const method of ['prompt', 'steer', 'followUp', 'nextTurn'] as const) {
      await expect(session[method](message as never)).rejects.toMatchObject({
        code: 'invalid_argument',
        message: expect.stringMatching(/Send a text|message/),
      });
    }
  });

  test('run ids and onBusy are checked', async () => {
    const session = client.session('s', { agent: 'plain' });
    await expect(session.prompt('Hi', { runId: 'a b' })).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(session.prompt('Hi', { onBusy: 'queue' as never })).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('onBusy'),
    });
    await expect(session.result('a b')).rejects.toMatchObject({ code: 'invalid_argument' });
    await expect(
      session.prompt(
        { role: 'user', content: 'Hi' },
        { images: [{ type: 'image', data: 'x', mimeType: 'image/png' }] },
      ),
    ).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  test('a message over 8 MiB is message_too_large, with its size and what to do', async () => {
    const session = client.session('s', { agent: 'plain' });
    const error = {
      code: 'message_too_large',
      message: expect.stringMatching(/8388608.*file/),
      details: { limit: 8388608 },
    };
    await expect(session.prompt('x'.repeat(9 * 1024 * 1024))).rejects.toMatchObject(error);
    await expect(session.steer('é'.repeat(5 * 1024 * 1024))).rejects.toMatchObject(error);
  });

  test('a session that nobody knows is not_found', async () => {
    const session = client.session('nobody-knows', { agent: 'plain' });
    const error = { code: 'not_found', message: expect.stringContaining('prompt') };
    await expect(session.status()).rejects.toMatchObject(error);
    await expect(session.abort()).rejects.toMatchObject(error);
    await expect(session.queues()).rejects.toMatchObject(error);
    await expect(session.waitForIdle()).rejects.toMatchObject(error);
    expect(await Array.fromAsync(session.events({ follow: false }))).toEqual([]);
  });
});

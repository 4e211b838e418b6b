import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { type ProviderReply, type ProviderServer, startProviderServer } from '../src/testing/provider-server.ts';
import { waitFor } from './support/wait-for.ts';

// What people install: the tarball of `npm pack` in an empty project, with the README's files on top of it. Everything
// here happens in a folder of its own, so a test that runs at the same time sees nothing of it.

const root = fileURLToPath(new URL('..', import.meta.url));
const temporal = process.env.EVERTURN_TEST_TEMPORAL ?? '';
// The README's files use the default task queue and a fixed session id: a namespace of their own keeps them apart.
const namespace = `everturn-package-${process.pid}`;
const children = new Set<ChildProcess>();
let folder: string;
let project: string;
let packed: PackedTarball;
let provider: ProviderServer;
let connection: Connection;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  project = join(folder, 'project');
  packed = await pack(join(folder, 'package'));
  await mkdir(project);
  await cp(join(root, 'examples', 'quickstart'), project, { recursive: true });
  await writeFile(join(project, 'package.json'), '{ "name": "shop", "private": true, "type": "module" }');
  connection = await Connection.connect({ address: temporal });
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: msToTs('1 day'),
  });
  await npm(project, 'install', join(folder, packed.filename), '--prefer-offline', '--no-audit', '--no-fund');
  provider = await startProviderServer({ reply: ({ body }) => shopModel(body.messages as unknown as WireMessage[]) });
}, 300_000);

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await provider?.close();
  await connection?.operatorService.deleteNamespace({ namespace });
  await connection?.close();
  await rm(folder, { recursive: true, force: true });
}, 60_000);

test('the tarball has every file that package.json names, and nothing but code, declarations and documents', async () => {
  const { exports, bin } = JSON.parse(await readFile(join(project, 'node_modules/everturn/package.json'), 'utf8'));
  const paths = packed.files.map(({ path }) => path);
  const named = [exports, bin].flatMap(pathsIn).filter((path) => !path.startsWith('src/'));
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((path) => !paths.includes(path))).toEqual([]);
  expect(paths).toEqual(expect.arrayContaining(['README.md', 'LICENSE', 'CHANGELOG.md', 'docs/errors.md']));
  const documents = /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|docs\/[\w-]+\.md)$/;
  const code = /^dist\/[\w/.-]+\.(js|cjs|d\.ts|d\.cts|js\.map|cjs\.map)$/;
  expect(paths.filter((path) => !documents.test(path) && !code.test(path))).toEqual([]);
});

test('the README agent passes a strict type check against the packed declarations', async () => {
  // Declarations that cannot be resolved would turn into `any` and hide every mistake: these lines must be mistakes.
  const mistakes = [
    `import { defineAgent, textOf, type SessionEvent } from 'everturn';`,
    `import { AgentClient } from 'everturn/client';`,
    `import { scriptedModel } from 'everturn/testing';`,
    `import { createWorker } from 'everturn/worker';`,
    `import { definePolicy } from 'everturn/workflows';`,
    `// @ts-expect-error a model is a text`,
    `defineAgent({ name: 'x', model: 1 });`,
    `// @ts-expect-error text is no number`,
    `export const text: number = textOf({ content: '' });`,
    `// @ts-expect-error a worker needs a store`,
    `void createWorker({ agents: [] });`,
    `// @ts-expect-error a client needs a store`,
    `void AgentClient.connect({});`,
    `// @ts-expect-error a script is a list or a function`,
    `scriptedModel({ replies: 5 });`,
    `// @ts-expect-error a policy decides yes or no`,
    `definePolicy('x', { shouldStopAfterTurn: ({ newMessages }) => newMessages.length });`,
    `// @ts-expect-error there is no such event`,
    `export const isOdd = (event: SessionEvent) => event.type === 'odd';`,
  ];
  await writeFile(join(project, 'mistakes.ts'), mistakes.join('\n'));
  const compilerOptions = {
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
  };
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  const checked = await run(project, process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', '.']);
  expect(checked).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('all entries load, and workflows bundle with the payload converter, policies in plain JavaScript too', async () => {
  const workflows = [
    `import { definePolicy } from 'everturn/workflows';`,
    `export * from 'everturn/workflows';`,
    `definePolicy('shop', { shouldStopAfterTurn: ({ newMessages }) => newMessages.length > 1234567 });`,
  ];
  const script = [
    `import { defineAgent } from 'everturn';`,
    `import { AgentClient } from 'everturn/client';`,
    `import { scriptedModel } from 'everturn/testing';`,
    `import { bundleWorkflows, createWorker } from 'everturn/worker';`,
    `import { definePolicy } from 'everturn/workflows';`,
    `import { fileURLToPath } from 'node:url';`,
    `const workflowsPath = fileURLToPath(new URL('./policies.js', import.meta.url));`,
    `const [own, withPolicy] = await Promise.all([bundleWorkflows(), bundleWorkflows({ workflowsPath })]);`,
    `const loaded = [defineAgent, AgentClient.connect, scriptedModel, createWorker, definePolicy];`,
    `const has = (text) => [own, withPolicy].map(({ code }) => code.includes(text)).join();`,
    `console.log(loaded.map((value) => typeof value).join(), has('1234567'), has('malformed: reason'));`,
  ];
  await writeFile(join(project, 'policies.js'), workflows.join('\n'));
  await writeFile(join(project, 'entries.js'), script.join('\n'));
  const { code, stdout } = await run(project, process.execPath, ['entries.js']);
  expect([code, stdout.trim()]).toEqual([0, 'function,function,function,function,function false,true true,true']);
});

test('the README agent works: its worker is one process, its client another, and the answer is right', async () => {
  const env = {
    MODEL: 'stand-in',
    MODEL_BASE_URL: provider.baseUrl('openai-completions'),
    TEMPORAL_ADDRESS: temporal,
    TEMPORAL_NAMESPACE: namespace,
  };
  const worker = start(project, process.execPath, ['worker.ts'], env);
  await waitFor(() => worker.stdout().includes('The worker is ready') || worker.ended(), { what: 'the worker' });

  const client = await run(project, process.execPath, ['client.ts'], env);
  expect([client.code, client.stdout]).toEqual([0, 'There were 4 in stock. Ordered: 2 lamp.\n']);
  expect(await readFile(join(project, 'orders.txt'), 'utf8')).toBe('2 lamp\n');
  expect(provider.requests.map(({ body }) => [body.model, (body.messages as unknown[]).length])).toEqual([
    ['stand-in', 2],
    ['stand-in', 4],
    ['stand-in', 6],
  ]);
  expect(await readdir(join(project, '.everturn', 'store'))).toEqual(
    expect.arrayContaining(['everturn.db', 'live.db']),
  );

  worker.child.kill('SIGTERM');
  expect(await worker.exit).toEqual(0);
});

interface WireMessage {
  role: string;
  content: string;
}

/** Stands in for the model: it decides, and words its answer, from the tool results that it is given. */
function shopModel(messages: WireMessage[]): ProviderReply {
  const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
  const call = (name: string, args: { item: string; count?: number }): ProviderReply => ({
    content: [{ type: 'toolCall', name, arguments: args, id: `${name}-1` }],
  });
  if (results.length === 0) return call('check_stock', { item: 'lamp' });
  if (results.length === 1) return call('place_order', { item: 'lamp', count: 2 });
  return { content: [{ type: 'text', chunks: ['There were ', `${results[0]}. `, `${results[1]}.`] }] };
}

interface PackedTarball {
  filename: string;
  files: { path: string }[];
}

/** Packs a copy, since the build empties `dist`. */
async function pack(copy: string): Promise<PackedTarball> {
  await mkdir(copy);
  const { files } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { files: string[] };
  const build = ['package.json', 'tsconfig.json', 'tsconfig.build.json', 'src', 'README.md', 'LICENSE'];
  for (const name of [...build, ...files.filter((file) => file !== 'dist')]) {
    await cp(join(root, name), join(copy, name), { recursive: true });
  }
  await symlink(join(root, 'node_modules'), join(copy, 'node_modules'), 'dir');
  const answer = await npm(copy, 'pack', '--json', '--pack-destination', folder);
  // The build that npm runs first prints before the JSON.
  const [tarball] = Object.values(JSON.parse(answer.slice(answer.search(/^[[{]/m)))) as [PackedTarball];
  return tarball;
}

function pathsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value.replace(/^\.\//, '')];
  return Object.values(value as object).flatMap(pathsIn);
}

async function npm(cwd: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(cwd, 'npm', args);
  if (code !== 0) throw new Error(`npm ${args[0]} ended with ${code}:\n${stdout}\n${stderr}`);
  return stdout;
}

interface Started {
  child: ChildProcess;
  exit: Promise<number | NodeJS.Signals>;
  ended(): boolean;
  stdout(): string;
  stderr(): string;
}

function start(cwd: string, command: string, args: string[], extra: Record<string, string> = {}): Started {
  // The place of the npm that runs this test says nothing about the project, and the flags of jest are jest's.
  const { NODE_OPTIONS: _, INIT_CWD: __, npm_config_local_prefix: ___, ...env } = process.env;
  const child = spawn(command, args, { cwd, env: { ...env, ...extra }, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const exit = once(child, 'close').then(([code, signal]) => {
    children.delete(child);
    return (code ?? signal) as number | NodeJS.Signals;
  });
  return { child, exit, ended: () => !children.has(child), stdout: () => stdout, stderr: () => stderr };
}

async function run(
  cwd: string,
  command: string,
  args: string[],
  extra: Record<string, string> = {},
): Promise<{ code: number | NodeJS.Signals; stdout: string; stderr: string }> {
  const started = start(cwd, command, args, extra);
  const code = await started.exit;
  return { code, stdout: started.stdout(), stderr: started.stderr() };
}

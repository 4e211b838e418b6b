import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { surveyorTools } from '../../examples/surveyor/tools.ts';
import { openWorkspace } from '../../examples/surveyor/workspace.ts';
import { makeBench, makeFolder, removeFolders } from './folders.ts';
import { execute } from './local-loop.ts';

afterAll(removeFolders);

const outside = /is outside the workspace/;

describe('paths', () => {
  test('a workspace that is not there, or is a file, is refused by name', () => {
    const root = makeFolder({ 'a.txt': 'a' });
    expect(() => openWorkspace(join(root, 'nowhere'))).toThrow(/nowhere" is not a folder/);
    expect(() => openWorkspace(join(root, 'a.txt'))).toThrow(/a.txt" is not a folder/);
  });

  test.each(['..', '../', '../other', 'a/../../other', '/etc/passwd', '/', '/../..'])('%s is outside', async (path) => {
    const root = makeFolder({ 'a/b.txt': 'b' });
    await expect(openWorkspace(root).existing(path)).rejects.toThrow(outside);
    await expect(openWorkspace(root).target(path)).rejects.toThrow(outside);
  });

  test('a folder beside the workspace whose name begins alike is outside', async () => {
    const parent = makeFolder({ 'work/a.txt': 'a', 'workbench/secret.txt': 's' });
    await expect(openWorkspace(join(parent, 'work')).existing('../workbench/secret.txt')).rejects.toThrow(outside);
  });

  test('names that only look like a way up are inside', async () => {
    const root = makeFolder({ '..hidden/a.txt': 'a', '...': 'b' });
    const workspace = openWorkspace(root);
    await expect(workspace.existing('..hidden/a.txt')).resolves.toBe(join(root, '..hidden/a.txt'));
    await expect(workspace.existing('...')).resolves.toBe(join(root, '...'));
  });

  test('an absolute path inside is taken, also when the workspace is named through a link', async () => {
    const parent = makeFolder({ 'real/a.txt': 'a' });
    symlinkSync(join(parent, 'real'), join(parent, 'alias'));
    const workspace = openWorkspace(join(parent, 'alias'));
    await expect(workspace.existing(join(parent, 'alias/a.txt'))).resolves.toBe(join(parent, 'real/a.txt'));
    await expect(workspace.existing(join(parent, 'real/a.txt'))).resolves.toBe(join(parent, 'real/a.txt'));
    expect(workspace.show(join(parent, 'real/a.txt'))).toBe('a.txt');
  });

  test('a link that stays inside works, one that leads out is outside, whatever it leads to', async () => {
    const other = makeFolder({ 'secret.txt': 's' });
    const root = makeFolder({ 'a.txt': 'a', 'deep/': '' });
    symlinkSync('a.txt', join(root, 'in'));
    symlinkSync(join(other, 'secret.txt'), join(root, 'out-file'));
    symlinkSync(other, join(root, 'out-folder'));
    symlinkSync('../../..', join(root, 'deep/up'));
    const workspace = openWorkspace(root);
    await expect(workspace.existing('in')).resolves.toBe(join(root, 'a.txt'));
    for (const path of ['out-file', 'out-folder', 'out-folder/secret.txt', 'out-folder/missing', 'deep/up']) {
      await expect(workspace.existing(path)).rejects.toThrow(outside);
    }
  });

  test('a link to nowhere, a link to itself, a file used as a folder and a zero byte are clear errors', async () => {
    const root = makeFolder({ 'a.txt': 'a' });
    symlinkSync('nowhere', join(root, 'broken'));
    symlinkSync('loop', join(root, 'loop'));
    const workspace = openWorkspace(root);
    await expect(workspace.existing('broken')).rejects.toThrow(/leads through a link to something that is not there/);
    await expect(workspace.existing('loop')).rejects.toThrow(/cannot be opened: ELOOP/);
    await expect(workspace.existing('a.txt/b')).rejects.toThrow(/is a file, not a folder/);
    await expect(workspace.existing('a\0b')).rejects.toThrow(/zero byte/);
    await expect(workspace.existing('missing')).rejects.toThrow('There is no "missing" in the workspace.');
  });
});

describe('every tool', () => {
  test('refuses a path that leads out through a link', async () => {
    const other = makeFolder({ 'secret.txt': 'top secret' });
    const { workspace, tools } = makeBench();
    symlinkSync(other, join(workspace, 'out'));
    for (const [name, args] of [
      ['list', { path: 'out' }],
      ['read', { path: 'out/secret.txt' }],
      ['search', { pattern: 'secret', path: 'out' }],
    ] as const) {
      const { text, isError } = await execute(tools, name, args);
      expect([name, isError]).toEqual([name, true]);
      expect(text).toMatch(outside);
      expect(text).not.toContain('top secret');
    }
  });

  test('a search of the whole workspace does not follow links out of it', async () => {
    const other = makeFolder({ 'secret.txt': 'top secret' });
    const { workspace, tools } = makeBench({ 'a.txt': 'no' });
    symlinkSync(other, join(workspace, 'out'));
    symlinkSync(join(other, 'secret.txt'), join(workspace, 'out.txt'));
    expect((await execute(tools, 'search', { pattern: 'secret' })).text).toBe('0 matching lines in 0 of 1 files');
  });
});

describe('write', () => {
  test('makes the folders above the file and says what it wrote', async () => {
    const { output, tools } = makeBench();
    const result = await execute(tools, 'write', { path: 'a/b/report.md', content: '# Größe\nx\n' });
    expect(result).toEqual({ text: 'Wrote a/b/report.md: 2 lines, 12 bytes.', isError: false });
    expect(readFileSync(join(output, 'a/b/report.md'), 'utf8')).toBe('# Größe\nx\n');
  });

  test('a second write replaces the file and leaves nothing beside it', async () => {
    const { output, tools } = makeBench();
    await execute(tools, 'write', { path: 'report.md', content: 'one, and longer' });
    await execute(tools, 'write', { path: 'report.md', content: 'two' });
    expect(readFileSync(join(output, 'report.md'), 'utf8')).toBe('two');
    expect(readdirSync(output)).toEqual(['report.md']);
  });

  test.each(['../x.md', '/etc/x.md', 'a/../../x.md', '.', ''])('refuses %j', async (path) => {
    const { tools } = makeBench();
    expect((await execute(tools, 'write', { path, content: 'x' })).isError).toBe(true);
  });

  test('refuses the workspace itself: reports go to the report folder alone', async () => {
    const { workspace, tools } = makeBench();
    const { text } = await execute(tools, 'write', { path: join(workspace, 'x.md'), content: 'x' });
    expect(text).toMatch(outside);
    expect(readdirSync(workspace)).toEqual([]);
  });

  test('refuses a folder that is a link out, and one in the middle of the path', async () => {
    const other = makeFolder();
    const { output, tools } = makeBench();
    symlinkSync(other, join(output, 'out'));
    mkdirSync(join(output, 'deep'));
    symlinkSync(other, join(output, 'deep/out'));
    for (const path of ['out/x.md', 'out/new/x.md', 'deep/out/x.md', 'deep/out/new/deeper/x.md']) {
      const { text, isError } = await execute(tools, 'write', { path, content: 'x' });
      expect([path, isError]).toEqual([path, true]);
      expect(text).toMatch(outside);
    }
    expect(readdirSync(other)).toEqual([]);
  });

  test('a link in the place of the file is replaced, what it points to stays', async () => {
    const other = makeFolder({ 'precious.txt': 'precious' });
    const { output, tools } = makeBench();
    symlinkSync(join(other, 'precious.txt'), join(output, 'report.md'));
    await execute(tools, 'write', { path: 'report.md', content: 'x' });
    expect(readFileSync(join(other, 'precious.txt'), 'utf8')).toBe('precious');
    expect(readFileSync(join(output, 'report.md'), 'utf8')).toBe('x');
  });

  test('a name that is a folder is refused', async () => {
    const { output, tools } = makeBench();
    mkdirSync(join(output, 'report.md'));
    const { text } = await execute(tools, 'write', { path: 'report.md', content: 'x' });
    expect(text).toBe('"report.md" is a folder. Choose another name.');
  });

  test('a missing report folder is said when the tools are made', () => {
    const workspace = makeFolder();
    expect(() => surveyorTools({ workspace, output: join(workspace, 'none') })).toThrow(/none" is not a folder/);
    expect(existsSync(join(workspace, 'none'))).toBe(false);
  });
});

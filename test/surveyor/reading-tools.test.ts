import { execFileSync } from 'node:child_process';
import { chmodSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { makeBench, removeFolders } from './folders.ts';
import { execute } from './local-loop.ts';

afterAll(removeFolders);

const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index + 1}`).join('\n');

describe('list', () => {
  test('shows folders, sizes and links, and names what it leaves out', async () => {
    const { workspace, tools } = makeBench({
      'b.txt': '12345',
      'a/inner.txt': 'x',
      '.git/config': 'x',
      'node_modules/p/index.js': 'x',
    });
    symlinkSync('b.txt', join(workspace, 'c'));
    expect((await execute(tools, 'list', {})).text.split('\n')).toEqual([
      'Folder ., folders: 1, files: 1',
      '  a/',
      '  b.txt  5 bytes',
      '  c -> b.txt',
      'Not shown: .git, node_modules',
    ]);
  });

  test('goes as deep as it is asked to', async () => {
    const { tools } = makeBench({ 'a/b/c/d.txt': 'x', 'a/node_modules/x': 'x' });
    expect((await execute(tools, 'list', { depth: 3 })).text.split('\n')).toEqual([
      'Folder ., folders: 3, files: 0',
      '  a/',
      '  a/b/',
      '  a/b/c/',
      'Not shown: node_modules',
    ]);
  });

  test('stops after 500 entries and says so', async () => {
    const files = Object.fromEntries(Array.from({ length: 510 }, (_, index) => [`f${index}.txt`, 'x']));
    const { tools } = makeBench(files);
    const shown = (await execute(tools, 'list', {})).text.split('\n');
    expect(shown).toHaveLength(502);
    expect(shown.at(-1)).toMatch(/^Stopped after 500 entries/);
  });

  test('a name with a line break cannot pose as another entry', async () => {
    const { tools } = makeBench({ 'x\n  fake.txt  9 bytes': 'x' });
    expect((await execute(tools, 'list', {})).text.split('\n')[1]).toBe('  "x\\n  fake.txt  9 bytes"  1 bytes');
  });

  test('an empty folder, a file and a missing folder each get a clear answer', async () => {
    const { tools } = makeBench({ 'a.txt': 'x' });
    expect((await execute(makeBench().tools, 'list', {})).text).toBe('Folder ., folders: 0, files: 0');
    expect((await execute(tools, 'list', { path: 'a.txt' })).text).toBe('"a.txt" is not a folder. Use read for files.');
    expect((await execute(tools, 'list', { path: 'b' })).text).toBe('There is no "b" in the workspace.');
  });
});

describe('read', () => {
  test('gives a whole small file as it is', async () => {
    const { tools } = makeBench({ 'a.txt': 'one\r\ntwo\n\nfour' });
    expect(await execute(tools, 'read', { path: 'a.txt' })).toEqual({ text: 'one\ntwo\n\nfour', isError: false });
  });

  test('gives a window and says where to go on', async () => {
    const { tools } = makeBench({ 'a.txt': `${lines(10)}\n` });
    expect((await execute(tools, 'read', { path: 'a.txt', offset: 4, limit: 2 })).text).toBe(
      'line 4\nline 5\n[lines 4 to 5; there are more: go on with offset 6]',
    );
    expect((await execute(tools, 'read', { path: 'a.txt', offset: 9, limit: 2 })).text).toBe(
      'line 9\nline 10\n[lines 9 to 10, the end]',
    );
    expect((await execute(tools, 'read', { path: 'a.txt', offset: 99 })).text).toBe(
      '[a.txt has 10 lines, there is no line 99]',
    );
  });

  test('a file of 60 MB on one line, and one of a million lines, come back small', async () => {
    const { tools } = makeBench({ 'line.txt': 'x'.repeat(60_000_000), 'many.txt': lines(1_000_000) });
    const one = (await execute(tools, 'read', { path: 'line.txt' })).text;
    expect(one).toBe(`${'x'.repeat(2_000)}… [59998000 more characters]`);
    const many = (await execute(tools, 'read', { path: 'many.txt' })).text;
    expect(many.length).toBeLessThan(51_000);
    expect(many).toMatch(/there are more: go on with offset 2001\]$/);
    expect((await execute(tools, 'read', { path: 'many.txt', offset: 1_000_000 })).text).toMatch(/^line 1000000\n/);
  });

  test('characters that span two chunks of the file stay whole', async () => {
    const { tools } = makeBench({ 'a.txt': `${'x'.repeat(65_535)}ü\n`.replace(/(.{1000})/g, '$1\n') });
    expect((await execute(tools, 'read', { path: 'a.txt', offset: 60 })).text).toContain('xü');
  });

  test.each([
    ['with a zero byte', Buffer.from([65, 66, 0, 67])],
    ['that is not UTF-8', Buffer.from([0xff, 0xfe, 0xfd, 65])],
  ])('refuses a file %s', async (_, bytes) => {
    const { tools } = makeBench({ 'a.bin': bytes });
    const { text, isError } = await execute(tools, 'read', { path: 'a.bin' });
    expect(isError).toBe(true);
    expect(text).toMatch(/"a.bin" is binary/);
  });

  test('refuses folders and pipes, which would never end', async () => {
    const { workspace, tools } = makeBench({ 'a/': '' });
    execFileSync('sh', ['-c', 'mkfifo pipe'], { cwd: workspace });
    expect((await execute(tools, 'read', { path: 'a' })).text).toBe('"a" is a folder. Use list for folders.');
    expect((await execute(tools, 'read', { path: 'pipe' })).text).toBe('"pipe" is not a regular file.');
  });

  test('an empty file is said to be empty', async () => {
    const { tools } = makeBench({ 'a.txt': '' });
    expect((await execute(tools, 'read', { path: 'a.txt' })).text).toBe('[a.txt is empty]');
  });
});

describe('search', () => {
  const files = {
    'a.ts': 'one\nTODO x\r\nthree',
    'b/c.ts': 'todo\nTODO y',
    'd.md': 'TODO',
    'node_modules/e.ts': 'TODO',
  };

  test('counts every matching line and shows where they are', async () => {
    const { tools } = makeBench(files);
    expect((await execute(tools, 'search', { pattern: 'TODO', glob: '*.ts' })).text.split('\n')).toEqual([
      '2 matching lines in 2 of 2 files',
      'a.ts:2: TODO x',
      'b/c.ts:2: TODO y',
    ]);
    expect((await execute(tools, 'search', { pattern: 'todo$', ignoreCase: true })).text).toMatch(/^2 matching lines/);
    expect((await execute(tools, 'search', { pattern: 'x$', path: 'a.ts' })).text).toMatch(/^1 matching lines/);
    expect((await execute(tools, 'search', { pattern: 'TODO', path: 'b' })).text).toMatch(
      /^1 matching lines in 1 of 1/,
    );
  });

  test.each([
    ['*.{ts,md}', 3],
    ['b/*.ts', 1],
    ['**/*.ts', 2],
    ['?.md', 1],
    ['*.TS', 0],
    ['*.(ts', 0],
  ])('the glob %s takes %i files', async (glob, count) => {
    const { tools } = makeBench(files);
    expect((await execute(tools, 'search', { pattern: 'TODO', glob })).text).toContain(` of ${count} files`);
  });

  test('shows a bounded number of hits and still counts all', async () => {
    const { tools } = makeBench({ 'a.txt': lines(5_000) });
    const shown = (await execute(tools, 'search', { pattern: 'line', limit: 3 })).text.split('\n');
    expect(shown).toHaveLength(5);
    expect(shown[0]).toBe('5000 matching lines in 1 of 1 files');
    expect(shown.at(-1)).toBe('[3 of 5000 shown]');
  });

  test('leaves binary, large and unreadable files out and says how many', async () => {
    const { workspace, tools } = makeBench({
      'a.bin': Buffer.from([0, 1]),
      'b.txt': 'x'.repeat(5_000_001),
      'c.txt': 'x',
    });
    writeFileSync(join(workspace, 'd.txt'), 'x');
    chmodSync(join(workspace, 'd.txt'), 0);
    const isRoot = process.getuid?.() === 0;
    const { text } = await execute(tools, 'search', { pattern: 'x' });
    expect(text).toContain(`[${isRoot ? 2 : 3} files not searched: binary, larger than 5 MB, or not readable]`);
  });

  test('a bad pattern is a clear error', async () => {
    const { text, isError } = await execute(makeBench(files).tools, 'search', { pattern: 'a(b' });
    expect(isError).toBe(true);
    expect(text).toMatch(/Invalid regular expression.*Unterminated group.*Escape special characters/);
  });

  test('a pattern that backtracks for ever blocks nobody and ends with the abort', async () => {
    const { tools } = makeBench({ 'a.txt': `${'a'.repeat(60)}!` });
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(new Error('aborted by the test')), 200);
    const { text, isError } = await execute(tools, 'search', { pattern: '^(a+)+$' }, { signal: abort.signal });
    clearTimeout(timer);
    expect({ text, isError }).toEqual({ text: 'aborted by the test', isError: true });
  });
});

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { errorCodes } from '../src/common/errors.ts';

// What the documents say and a program can check.

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const documents = ['README.md', ...globSync('docs/**/*.md', { cwd: root })];
const readme = read('README.md');

/** Rows of the table whose head begins with this cell, as cells. */
function tableOf(text: string, firstHead: string): string[][] {
  const rows = text.split('\n').map(cellsOf);
  const head = rows.findIndex(([first]) => first === firstHead);
  const body = rows.slice(head + 2);
  const end = body.findIndex((cells) => cells.length === 0);
  return body.slice(0, end < 0 ? undefined : end);
}

/** A bar ends a cell unless it is escaped. */
function cellsOf(line: string): string[] {
  if (!line.startsWith('|')) return [];
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
}

const codeSpans = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code as string);

/** Headings as the anchors that links may name. */
function anchorsOf(text: string): string[] {
  const headings = [...text.replace(/```[\s\S]*?```/g, '').matchAll(/^#+ (.+)$/gm)].map(([, title]) => title as string);
  return headings.map((title) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Relative links of a document that lead nowhere. */
function brokenLinks(path: string, text: string): string[] {
  const prose = text.replace(/```[\s\S]*?```/g, '');
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string);
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [file = '', anchor] = target.split('#');
    const full = file === '' ? path : join(dirname(path), file);
    if (!existsSync(join(root, full))) return true;
    return anchor !== undefined && !anchorsOf(read(full)).includes(anchor);
  });
}

describe('docs/errors.md', () => {
  const rows = tableOf(read('docs/errors.md'), 'Code');

  test('has each error code once, in the order of the source, and no other', () => {
    expect(rows.map(([code]) => code)).toEqual(errorCodes.map((code) => `\`${code}\``));
  });

  test('says of each code what it means and whether it is retryable', () => {
    const lacking = rows.filter(([, meaning = '', retryable = '']) => meaning === '' || !/^(yes|no)\b/.test(retryable));
    expect(lacking).toEqual([]);
  });

  test('says what to do about each code that something raises', () => {
    expect(rows.filter(([, meaning = '', , advice]) => !meaning.startsWith('Reserved') && advice === '')).toEqual([]);
  });

  test('calls reserved what no source names, and nothing else', () => {
    const sources = globSync('src/**/*.ts', { cwd: root }).filter(
      (path) => path !== join('src', 'common', 'errors.ts'),
    );
    const text = sources.map(read).join('\n');
    // An error is made with its code as the first argument, or as the code of plain data.
    const isRaised = (code: string) => new RegExp(`(\\(\\s*|code: |code = )'${code}'`).test(text);
    const reserved = rows.filter(([, meaning]) => meaning?.startsWith('Reserved')).map(([code]) => codeSpans(code)[0]);
    expect(reserved).toEqual(errorCodes.filter((code) => !isRaised(code)));
  });
});

describe('the README', () => {
  test.each(['agent', 'workflows', 'worker', 'client'])('shows examples/quickstart/%s.ts as it is', (name) => {
    expect(readme).toContain(`\`\`\`ts\n${read(`examples/quickstart/${name}.ts`)}\`\`\`\n`);
  });

  const entries = tableOf(readme, 'Entry').map(([entry, , values]) => ({
    entry: codeSpans(entry)[0] as string,
    values,
  }));

  test('lists the entries that package.json exports', () => {
    const { exports } = JSON.parse(read('package.json')) as { exports: Record<string, unknown> };
    const exported = Object.keys(exports).filter((path) => path !== './package.json');
    expect(entries.map(({ entry }) => entry)).toEqual(exported.map((path) => path.replace('.', 'everturn')));
  });

  test.each(entries)('lists every value of $entry, and none that is not there', async ({ entry, values }) => {
    const module = (await import(entry)) as object;
    expect(codeSpans(values).sort()).toEqual(Object.keys(module).sort());
  });

  test('names the scripts that package.json has', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...readme.matchAll(/npm run ([\w-]+)/g)].map(([, script]) => script as string);
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((script) => !(script in scripts))).toEqual([]);
  });
});

describe('links', () => {
  test.each(documents)('of %s lead to files and headings that exist', (path) => {
    expect(brokenLinks(path, read(path))).toEqual([]);
  });

  test('to a missing file or heading are found', () => {
    const text = '[a](docs/errors.md) [b](docs/nothing.md) [c](docs/errors.md#errors) [d](docs/errors.md#nothing)';
    expect(brokenLinks('README.md', text)).toEqual(['docs/nothing.md', 'docs/errors.md#nothing']);
  });
});

test('differences from pi are numbered from 1 without a gap', () => {
  const numbers = [...read('docs/differences.md').matchAll(/^(\d+)\. \*\*/gm)].map(([, number]) => Number(number));
  expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  expect(numbers.length).toBeGreaterThan(30);
});

test('docs/architecture.md names test files that exist', () => {
  const named = codeSpans(read('docs/architecture.md')).filter((code) => /^test\/[\w/.-]+\.ts$/.test(code));
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

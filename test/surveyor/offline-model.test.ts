import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { decide } from '../../examples/surveyor/offline/decide.ts';
import { skippedFolders } from '../../examples/surveyor/workspace.ts';
import { type Bench, makeBench, removeFolders } from './folders.ts';
import { askModel, runLocally } from './local-loop.ts';

afterAll(removeFolders);

const prompt = 'Survey this folder and write a report with real figures.';
const steering = 'Focus on the tests: add a section about them';
const largest = 'What are the three largest files?';

const project = {
  'package.json': JSON.stringify({
    name: 'shop',
    version: '1.2.3',
    description: 'A shop.',
    scripts: { test: 'jest', build: 'tsc' },
    dependencies: { a: '1', b: '2' },
    devDependencies: { c: '3' },
  }),
  'README.md': '# Shop\n\nSells things,\nmostly.\n\n## Use\n',
  'src/index.ts': 'export function one() {}\nexport const two = 2;\n// TODO: three\n',
  'src/deep/money.ts': `${'export interface Money {}\n'.repeat(30)}// FIXME\n`,
  'src/name with blanks.ts': 'type X = 1;\n',
  'test/index.test.ts': "test('one', () => {});\ntest('two', () => {});\n  it('three', () => {});\n",
  'test/helper.ts': 'const x = 1;\n',
  'logo.png': Buffer.from([137, 80, 78, 71, 0, 10, 10]),
  '.git/config': 'TODO\n',
  'dist/index.js': 'TODO\n',
  'node_modules/a/index.js': 'x\ny\n',
  'node_modules/@s/b/index.js': 'z\n',
};

interface Sums {
  files: number;
  lines: number;
  bytes: number;
}

/** Counts again, in another way than the model does. */
function count(root: string, wanted: (path: string) => boolean = () => true): Sums {
  const sums = { files: 0, lines: 0, bytes: 0 };
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name).slice(root.length + 1);
    if (!entry.isFile() || path.split('/').some((part) => skippedFolders.includes(part)) || !wanted(path)) continue;
    sums.files += 1;
    sums.lines += readFileSync(join(root, path)).filter((byte) => byte === 10).length;
    sums.bytes += statSync(join(root, path)).size;
  }
  return sums;
}

const report = ({ output }: Bench) => readFileSync(join(output, 'report.md'), 'utf8');
const figures = (value: number) => value.toLocaleString('en-US');
const row = (name: string, { files, lines, bytes }: Sums) =>
  `| ${name} | ${figures(files)} | ${figures(lines)} | ${figures(bytes)} |`;

describe('a survey', () => {
  test('writes a report whose figures are those of the folder', async () => {
    const bench = makeBench(project);
    const { answers, called } = await runLocally({ tools: bench.tools, prompt });
    const text = report(bench);
    const all = count(bench.workspace);
    expect(text).toContain(`${all.files} files, ${all.lines} lines, ${figures(all.bytes)} bytes.`);
    expect(text).toContain(row('all', all));
    expect(text).toContain(
      row(
        'ts',
        count(bench.workspace, (path) => path.endsWith('.ts')),
      ),
    );
    expect(text).toContain(
      row(
        'src/',
        count(bench.workspace, (path) => path.startsWith('src/')),
      ),
    );
    expect(text).toContain(
      row(
        '(files at the top)',
        count(bench.workspace, (path) => !path.includes('/')),
      ),
    );
    expect(text).toContain('# Survey of shop');
    expect(text).toContain('package.json calls it shop 1.2.3: A shop.');
    expect(text).toContain('README.md begins: "Sells things, mostly."');
    expect(text).toContain('- 2 named in package.json, 1 for development\n- scripts: test, build');
    expect(text).toContain('- 2 packages installed in node_modules: 2 files, 3 lines, 6 bytes');
    expect(text).toContain('- 32 exported declarations in 2 files');
    expect(text).toContain('- 3 test cases in 1 file');
    expect(text).toContain('2 lines with TODO, FIXME, HACK or XXX in 2 files.');
    expect(text).not.toContain('## Tests');
    expect(answers).toHaveLength(1);
    expect(answers[0]).toMatch(/^The report is in report\.md\. .* has 8 files with 47 lines, mostly ts\.$/);
    expect(new Set(called)).toEqual(new Set(['list', 'read', 'bash', 'search', 'write']));
  });

  test('a message in the middle adds a section with true figures, before the report is written', async () => {
    const bench = makeBench(project);
    const { called } = await runLocally({ tools: bench.tools, prompt, steer: { 1: steering } });
    const tests = count(bench.workspace, (path) => path.startsWith('test/'));
    const share = Math.round((100 * tests.lines) / count(bench.workspace).lines);
    expect(report(bench)).toContain(
      `## Tests\n\n- ${tests.files} files with ${tests.lines} lines (${share} % of all lines)\n- 3 test cases in 1 file\n`,
    );
    expect(called.filter((name) => name === 'write')).toHaveLength(1);
  });

  test('a message after the report makes it written again, and nothing is counted twice', async () => {
    const bench = makeBench(project);
    const { called, answers } = await runLocally({
      tools: bench.tools,
      prompt,
      followUps: ['Also look at money, please'],
    });
    expect(report(bench)).toContain('## Money\n\n- 1 file with 31 lines');
    expect(report(bench)).toContain('- 30 lines about "money" in 1 file');
    expect(answers[1]).toContain('It has the section you asked for: Money.');
    expect(called.filter((name) => name === 'write')).toHaveLength(2);
    expect(called.filter((name) => name === 'bash')).toHaveLength(3);
  });

  test('a follow-up question is looked up and answered with true figures', async () => {
    const bench = makeBench({ ...project, 'big.txt': 'x\n'.repeat(500), 'bigger.txt': 'x'.repeat(2_000) });
    const { answers } = await runLocally({ tools: bench.tools, prompt, followUps: [largest] });
    expect(answers[1]).toBe(
      'The three largest files are:\n' +
        '- bigger.txt: 2,000 bytes, 0 lines\n- big.txt: 1,000 bytes, 500 lines\n- src/deep/money.ts: 789 bytes, 31 lines',
    );
  });

  test('a new survey looks at everything anew', async () => {
    const bench = makeBench(project);
    const { called } = await runLocally({ tools: bench.tools, prompt, followUps: ['Make a new survey'] });
    expect(called.filter((name) => name === 'write')).toHaveLength(2);
    expect(called.slice(called.length / 2)).toEqual(called.slice(0, called.length / 2));
  });
});

describe('questions', () => {
  test.each([
    ['How many files are there?', 'There are 8 files with 47 lines and 1,150 bytes.'],
    ['Which languages are used?', 'By lines: ts (83 %), md (13 %), png (4 %) and json (0 %).'],
    ['How many tests are there?', 'There are 3 test cases in 1 file.'],
    ['Are there TODOs?', 'There are 2 lines with TODO'],
    ['What is the largest file?', 'The largest file is:\n- src/deep/money.ts: 789 bytes, 31 lines'],
    ['Where is Money defined?', '30 lines in 1 file mention "money"'],
    ['Why?', 'I am the offline model: ask me'],
  ])('%s is answered without a survey', async (question, start) => {
    const bench = makeBench(project);
    const { answers } = await runLocally({ tools: bench.tools, prompt: question });
    expect(answers[0]).toContain(start);
    expect(readdirSync(bench.output)).toEqual([]);
  });
});

describe('any folder', () => {
  test.each<[string, Record<string, string | Buffer>, RegExp]>([
    ['an empty one', {}, /The folder has no files\./],
    ['one with empty folders', { 'a/': '', 'b/c/': '' }, /The folder has no files\./],
    [
      'only binary files',
      { 'a.bin': Buffer.alloc(3_000), 'b.png': Buffer.from([0, 1, 2]) },
      /2 files, 0 lines, 3,003 bytes/,
    ],
    ['one file without an extension', { LICENSE: 'MIT\n' }, /\| \(no extension\) \| 1 \| 1 \| 4 \|/],
    ['a broken package.json', { 'package.json': '{ "name": ' }, /1 file, 0 lines, 10 bytes/],
    ['a package.json of another shape', { 'package.json': '[1]\n' }, /0 named in package\.json/],
    ['a binary README', { 'README.md': Buffer.from([0, 255]) }, /1 file, 0 lines, 2 bytes/],
    [
      'odd names',
      { "it's $(x) `y`.txt": 'a\n', 'tab\tname.txt': 'b\n', 'ünï.txt': 'c\n' },
      /3 files, 3 lines, 6 bytes/,
    ],
    [
      'another language',
      { 'app/main.py': 'def test_a():\n  pass\n', 'app/x_test.go': 'func TestA() {}\n' },
      /2 test cases in 2 files/,
    ],
    ['an empty node_modules', { 'node_modules/': '', 'a.js': 'x\n' }, /0 packages installed in node_modules/],
  ])('%s gets a report', async (_, files, expected) => {
    const bench = makeBench(files);
    const { turns, answers } = await runLocally({
      tools: bench.tools,
      prompt,
      steer: { 0: steering },
      followUps: [largest],
    });
    expect(report(bench)).toMatch(expected);
    expect(turns).toBeLessThan(12);
    expect(answers).toHaveLength(2);
  });
});

describe('trouble', () => {
  test('a command whose outcome is unknown is run again, and the report says so', async () => {
    const bench = makeBench(project);
    const lost = new Set<string>();
    const { messages } = await runLocally({
      tools: bench.tools,
      prompt,
      fail(name, args) {
        const key = JSON.stringify(args);
        if (name !== 'bash' || lost.has(key)) return undefined;
        lost.add(key);
        return 'The tool was interrupted, outcome unknown.';
      },
    });
    expect(report(bench)).toContain(row('all', count(bench.workspace)));
    expect(report(bench)).toContain('2 commands were cut off by the death of a worker and run again.');
    expect(JSON.stringify(messages)).toContain('The outcome of bash is unknown: its worker died.');
  });

  test('it comes to an end when every tool fails every time', async () => {
    const bench = makeBench(project);
    for (const failure of ['broken', 'interrupted, outcome unknown']) {
      const { turns, answers } = await runLocally({
        tools: bench.tools,
        prompt,
        steer: { 0: steering },
        followUps: [largest, 'How many files?', 'Which languages?'],
        fail: () => failure,
      });
      expect(turns).toBeLessThan(40);
      expect(answers[0]).toContain('The report could not be written');
      expect(answers).toHaveLength(4);
    }
  });

  test('it comes to an end under a message after every turn', async () => {
    const bench = makeBench(project);
    const topics = [
      'money',
      'shop',
      'index',
      'tests',
      'docs',
      'helper',
      'logos',
      'names',
      'blanks',
      'things',
      'mostly',
      'sells',
    ];
    const steer = Object.fromEntries(topics.map((topic, turn) => [turn, `Add a section about ${topic}`]));
    const { turns } = await runLocally({ tools: bench.tools, prompt, steer });
    expect(turns).toBeLessThan(40);
  });

  test('it does without tools that it does not have', async () => {
    const bench = makeBench(project);
    const tools = bench.tools.filter((tool) => tool.name !== 'bash');
    const { answers, called } = await runLocally({ tools, prompt, followUps: [largest] });
    expect(called).not.toContain('bash');
    expect(report(bench)).toContain('The files could not be counted.');
    expect(answers[1]).toBe('I could not find out: there is no bash tool');
    expect((await runLocally({ tools: [], prompt })).answers[0]).toContain('there is no write tool');
  });

  test('after an abort a question is answered, and the survey is not taken up again', async () => {
    const bench = makeBench(project);
    const abort = new AbortController();
    abort.abort();
    const first = decide([{ role: 'user', content: prompt, timestamp: 0 }]);
    expect(first.calls).toEqual([]);
    const aborted = await askModel([{ role: 'user', content: prompt, timestamp: 0 }], bench.tools, abort.signal);
    expect(aborted.stopReason).toBe('aborted');
    const messages = [{ role: 'user', content: prompt, timestamp: 0 } as const, aborted];
    const { answers, called } = await runLocally({ tools: bench.tools, prompt: largest, messages });
    expect(answers[0]).toContain('The three largest files are:');
    expect(called).toEqual(['bash']);
  });

  test('equal transcripts give equal decisions, at every turn', async () => {
    const bench = makeBench(project);
    const { messages } = await runLocally({ tools: bench.tools, prompt, steer: { 2: steering }, followUps: [largest] });
    for (const [index, message] of messages.entries()) {
      if (message.role !== 'assistant') continue;
      const again = await askModel(messages.slice(0, index), bench.tools);
      expect(again.content).toEqual(message.content);
    }
  });
});

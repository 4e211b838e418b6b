import { skippedFolders } from '../workspace.ts';
import { parseRows } from './commands.ts';
import type { Evidence, Step } from './evidence.ts';
import {
  type Amount,
  readCounts,
  readExports,
  readHits,
  readListing,
  readManifest,
  readPackages,
  readReadme,
  readTestCases,
  readTodos,
} from './facts.ts';
import { count, number, percent, table } from './format.ts';
import type { Topic } from './requests.ts';
import { countStep, lookStep, topicFilesStep, topicLinesStep, weighStep } from './steps.ts';

/** The report, from evidence alone: the same evidence gives the same text, so a finished report is recognised. */
export function renderReport(evidence: Evidence, topics: readonly Topic[]): string {
  const sections = [
    introduction(evidence),
    figures(evidence),
    folders(evidence),
    dependencies(evidence),
    code(evidence),
    openWork(evidence),
    ...topics.map((topic) => topicSection(evidence, topic)),
    method(evidence),
  ];
  return `${sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n')}\n`;
}

/** The heading of a topic's section. */
export function topicTitle({ word }: Topic): string {
  if (word === 'docs') return 'Documentation';
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function introduction(evidence: Evidence): string[] {
  const counts = readCounts(evidence);
  const manifest = readManifest(evidence);
  const readme = readReadme(evidence);
  const lines = [`# Survey of ${manifest?.name ?? counts?.name ?? 'the folder'}`, ''];
  if (manifest?.name !== undefined) {
    const about = manifest.description === undefined ? '' : `: ${manifest.description}`;
    lines.push(`package.json calls it ${manifest.name} ${manifest.version ?? '(no version)'}${about}`, '');
  }
  if (readme !== undefined && readme.about !== '') lines.push(`${readme.path} begins: "${readme.about}"`, '');
  if (counts === undefined) return [...lines, 'The files could not be counted.'];
  if (counts.all.files === 0) return [...lines, 'The folder has no files.'];
  const main = counts.types[0];
  const { all } = counts;
  lines.push(`${count(all.files, 'file')}, ${count(all.lines, 'line')}, ${count(all.bytes, 'byte')}.`);
  if (main !== undefined) lines.push(`Most lines are in ${main.name} files: ${percent(main.lines, all.lines)}.`);
  return lines;
}

function figures(evidence: Evidence): string[] {
  const counts = readCounts(evidence);
  if (counts === undefined || counts.all.files === 0) return [];
  return ['## Files by type', '', ...amountTable('Type', counts.types, counts.all)];
}

function folders(evidence: Evidence): string[] {
  const tops = readCounts(evidence)?.tops ?? [];
  if (tops.length === 0) return [];
  const named = tops.map((top) => ({ ...top, name: top.name === '.' ? '(files at the top)' : `${top.name}/` }));
  return ['## Folders', '', ...amountTable('Folder', named)];
}

function dependencies(evidence: Evidence): string[] {
  const manifest = readManifest(evidence);
  const packages = readPackages(evidence);
  if (manifest === undefined && packages === undefined) return [];
  const lines = ['## Dependencies', ''];
  if (manifest !== undefined) {
    lines.push(
      `- ${number(manifest.dependencies)} named in package.json, ${number(manifest.devDependencies)} for development`,
    );
    if (manifest.scripts.length > 0) lines.push(`- scripts: ${manifest.scripts.join(', ')}`);
  }
  if (packages !== undefined) {
    const { files, lines: codeLines, bytes } = packages;
    lines.push(
      `- ${count(packages.count, 'package')} installed in node_modules: ${count(files, 'file')}, ${count(codeLines, 'line')}, ${count(bytes, 'byte')}`,
    );
    if (packages.largest.length > 0) lines.push('', ...amountTable('Largest packages', packages.largest));
  }
  return lines;
}

function code(evidence: Evidence): string[] {
  const exported = readExports(evidence);
  const cases = readTestCases(evidence);
  const lines: string[] = [];
  if (exported !== undefined)
    lines.push(`- ${count(exported.lines, 'exported declaration')} in ${count(exported.files, 'file')}`);
  if (cases !== undefined) lines.push(`- ${count(cases.lines, 'test case')} in ${count(cases.files, 'file')}`);
  return lines.length === 0 ? [] : ['## Code', '', ...lines];
}

function openWork(evidence: Evidence): string[] {
  const todos = readTodos(evidence);
  if (todos === undefined) return [];
  const lines = [
    '## Open work',
    '',
    `${count(todos.lines, 'line')} with TODO, FIXME, HACK or XXX in ${count(todos.files, 'file')}.`,
  ];
  if (todos.shown.length > 0) lines.push('', ...quoted(todos.shown));
  return lines;
}

function topicSection(evidence: Evidence, topic: Topic): string[] {
  const output = evidence.of(topicFilesStep(topic));
  const hits = readHits(evidence.of(topicLinesStep(topic)));
  const lines = [`## ${topicTitle(topic)}`, ''];
  if (output === undefined) lines.push('- The files could not be counted.');
  else {
    const [files = 0, fileLines = 0] = parseRows(output, 'files')[0]?.map(Number) ?? [];
    const all = readCounts(evidence)?.all.lines ?? 0;
    const share = all > 0 ? ` (${percent(fileLines, all)} of all lines)` : '';
    lines.push(`- ${count(files, 'file')} with ${count(fileLines, 'line')}${share}`);
  }
  if (hits !== undefined) {
    const what =
      topic.word === 'tests' ? 'test case' : topic.word === 'docs' ? 'heading' : `line about "${topic.word}"`;
    const many = what.replace(/^(line|heading|test case)/, '$1s');
    lines.push(`- ${count(hits.lines, what, many)} in ${count(hits.files, 'file')}`);
  }
  const longest = parseRows(output ?? '', 'file').map(([fileLines, , path]) => [path ?? '', number(Number(fileLines))]);
  if (longest.length > 0) lines.push('', ...table(['Longest files', 'Lines'], longest));
  if (hits !== undefined && hits.shown.length > 0) lines.push('', 'The first of them:', '', ...quoted(hits.shown));
  return lines;
}

function method(evidence: Evidence): string[] {
  const lines = [
    '## How this was made',
    '',
    `Counted with find and wc, searched line by line. Not counted: ${skippedFolders.join(', ')}.`,
  ];
  const look = evidence.of(lookStep);
  const hidden = readListing(look)?.notShown ?? [];
  if (hidden.length > 0) lines.push(`Of these there are at the top: ${hidden.join(', ')}.`);
  if (look === undefined)
    lines.push(`The folder could not be listed: ${evidence.failureOf(lookStep) ?? 'there is no list tool'}`);
  for (const [what, step] of [
    ['count', countStep],
    ['weighing of the dependencies', weighStep],
  ] as [string, Step][]) {
    const failure = evidence.failureOf(step);
    if (failure !== undefined) lines.push(`The ${what} failed: ${failure.split('\n').at(-1)}`);
  }
  if (evidence.cutOff > 0) {
    lines.push(
      `${count(evidence.cutOff, 'command was', 'commands were')} cut off by the death of a worker and run again.`,
    );
  }
  return lines;
}

function amountTable(title: string, amounts: Amount[], all?: Amount): string[] {
  const row = (amount: Amount) => [amount.name, number(amount.files), number(amount.lines), number(amount.bytes)];
  const rows = amounts.map(row);
  if (all !== undefined) rows.push(row({ ...all, name: 'all' }));
  return table([title, 'Files', 'Lines', 'Bytes'], rows);
}

/** Lines of the folder's files, as a literal block: whatever they hold, they stay quotations. */
function quoted(lines: string[]): string[] {
  return lines.map((line) => `    ${line}`);
}

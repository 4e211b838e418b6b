import { parseRows } from './commands.ts';
import type { Evidence } from './evidence.ts';
import { countStep, exportsStep, lookStep, readStep, testCasesStep, todoStep, weighStep } from './steps.ts';

export interface Amount {
  name: string;
  files: number;
  lines: number;
  bytes: number;
}

export interface Counts {
  /** Name of the folder. */
  name: string;
  all: Amount;
  /** By extension and by folder at the top, most lines first, 40 at most. */
  types: Amount[];
  tops: Amount[];
}

export interface Packages {
  count: number;
  files: number;
  lines: number;
  bytes: number;
  largest: Amount[];
}

export interface Hits {
  lines: number;
  files: number;
  /** "path:line: text", as shown. */
  shown: string[];
}

export interface Listing {
  folders: string[];
  files: { name: string; bytes: number }[];
  notShown: string[];
}

/** Facts of a package.json that a report wants. */
export interface Manifest {
  name?: string;
  version?: string;
  description?: string;
  scripts: string[];
  dependencies: number;
  devDependencies: number;
}

export function readListing(text: string | undefined): Listing | undefined {
  if (text === undefined) return undefined;
  const listing: Listing = { folders: [], files: [], notShown: [] };
  for (const line of text.split('\n')) {
    const folder = /^ {2}(.+)\/$/.exec(line)?.[1];
    const file = /^ {2}(.+) {2}(\d+) bytes$/.exec(line);
    if (folder !== undefined) listing.folders.push(unquote(folder));
    else if (file !== null) listing.files.push({ name: unquote(file[1] ?? ''), bytes: Number(file[2]) });
    else if (line.startsWith('Not shown: ')) listing.notShown = line.slice('Not shown: '.length).split(', ');
  }
  return listing;
}

export function readCounts(evidence: Evidence): Counts | undefined {
  const output = evidence.of(countStep);
  if (output === undefined) return undefined;
  const amounts = (kind: string) => parseRows(output, kind).map(toAmount);
  return {
    name: parseRows(output, 'name')[0]?.[0] ?? 'the folder',
    all: amounts('all')[0] ?? { name: 'all', files: 0, lines: 0, bytes: 0 },
    types: amounts('type'),
    tops: amounts('top'),
  };
}

export function readPackages(evidence: Evidence): Packages | undefined {
  const output = evidence.of(weighStep);
  const totals = output === undefined ? undefined : parseRows(output, 'packages')[0]?.map(Number);
  if (output === undefined || totals === undefined) return undefined;
  const [count = 0, files = 0, lines = 0, bytes = 0] = totals;
  return { count, files, lines, bytes, largest: parseRows(output, 'package').map(toAmount) };
}

/** Result of `search`. */
export function readHits(text: string | undefined): Hits | undefined {
  const [first = '', ...rest] = text?.split('\n') ?? [];
  const totals = /^(\d+) matching lines in (\d+) of/.exec(first);
  if (totals === null) return undefined;
  return { lines: Number(totals[1]), files: Number(totals[2]), shown: rest.filter((line) => !line.startsWith('[')) };
}

export function readManifest(evidence: Evidence): Manifest | undefined {
  const text = evidence.of(readStep('package.json'));
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = value as Record<string, unknown>;
  const keys = (name: string) => Object.keys(typeof fields[name] === 'object' ? (fields[name] ?? {}) : {});
  const manifest: Manifest = {
    scripts: keys('scripts'),
    dependencies: keys('dependencies').length,
    devDependencies: keys('devDependencies').length,
  };
  for (const name of ['name', 'version', 'description'] as const) {
    const field = fields[name];
    if (typeof field === 'string') manifest[name] = field;
  }
  return manifest;
}

/** Title and first paragraph of a README. */
export function readReadme(evidence: Evidence): { path: string; title: string; about: string } | undefined {
  const path = readListing(evidence.of(lookStep))?.files.find(({ name }) => /^readme(\.\w+)?$/i.test(name))?.name;
  const text = path === undefined ? undefined : evidence.of(readStep(path));
  if (path === undefined || text === undefined) return undefined;
  const title = /^#+ +(.+)$/m.exec(text)?.[1] ?? '';
  const paragraphs = text.split(/\n\s*\n/).map((part) => part.trim().replace(/\s+/g, ' '));
  const about = paragraphs.find((part) => /^[\p{L}\p{N}*_`"“]/u.test(part)) ?? '';
  return { path, title, about: about.length > 300 ? `${about.slice(0, 297)}…` : about };
}

export const readTodos = (evidence: Evidence) => readHits(evidence.of(todoStep));
export const readTestCases = (evidence: Evidence) => readHits(evidence.of(testCasesStep));
export const readExports = (evidence: Evidence) => readHits(evidence.of(exportsStep));

function toAmount([name = '', files, lines, bytes]: string[]): Amount {
  return { name, files: Number(files), lines: Number(lines), bytes: Number(bytes) };
}

function unquote(name: string): string {
  return name.startsWith('"') ? (JSON.parse(name) as string) : name;
}

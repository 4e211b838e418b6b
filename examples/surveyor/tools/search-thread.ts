// Runs as a worker thread of `search`: may block, since nothing else runs in it.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { skippedFolders } from '../workspace.ts';
import { globToRegExp } from './glob.ts';

export interface SearchOrder {
  root: string;
  /** Real path inside the root. */
  start: string;
  isFile: boolean;
  pattern: string;
  flags: string;
  glob: string | null;
  limit: number;
}

export interface SearchOutcome {
  hits: { path: string; line: number; text: string }[];
  /** All matching lines, shown or not. */
  total: number;
  filesWithHits: number;
  filesSearched: number;
  /** Files left out because they are binary, too large or not readable. */
  unread: number;
  complete: boolean;
}

const maxFiles = 50_000;
const maxFileBytes = 5_000_000;
const shownCharacters = 200;

function search(order: SearchOrder): SearchOutcome {
  const pattern = new RegExp(order.pattern, order.flags);
  const glob = order.glob === null ? null : globToRegExp(order.glob);
  const outcome: SearchOutcome = {
    hits: [],
    total: 0,
    filesWithHits: 0,
    filesSearched: 0,
    unread: 0,
    complete: true,
  };
  for (const file of order.isFile ? [order.start] : filesIn(order.start)) {
    if (outcome.filesSearched + outcome.unread >= maxFiles) {
      outcome.complete = false;
      break;
    }
    const path = relative(order.root, file).split(sep).join('/');
    if (glob !== null && !glob.test(path)) continue;
    const text = readText(file);
    if (text === undefined) outcome.unread += 1;
    else searchText(outcome, path, text, pattern, order.limit);
  }
  return outcome;
}

function searchText(outcome: SearchOutcome, path: string, text: string, pattern: RegExp, limit: number): void {
  outcome.filesSearched += 1;
  const before = outcome.total;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (!pattern.test(line)) continue;
    outcome.total += 1;
    if (outcome.hits.length < limit) {
      outcome.hits.push({ path, line: index + 1, text: line.trim().slice(0, shownCharacters) });
    }
  }
  if (outcome.total > before) outcome.filesWithHits += 1;
}

/** Regular files below a folder, in the order of their paths. Links are not followed, so nothing outside is read. */
function* filesIn(folder: string): Generator<string> {
  for (const entry of readFolder(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!skippedFolders.includes(entry.name)) yield* filesIn(path);
    } else if (entry.isFile()) yield path;
  }
}

function readFolder(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true }).sort((left, right) => (left.name < right.name ? -1 : 1));
  } catch {
    return [];
  }
}

/** undefined: binary, too large or not readable. */
function readText(file: string): string | undefined {
  try {
    if (statSync(file).size > maxFileBytes) return undefined;
    const bytes = readFileSync(file);
    return bytes.subarray(0, 8_192).includes(0) ? undefined : bytes.toString('utf8');
  } catch {
    return undefined;
  }
}

parentPort?.postMessage(search(workerData as SearchOrder));

import { stat } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { defineTool, type Tool } from 'everturn';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';
import type { SearchOrder, SearchOutcome } from './search-thread.ts';

const maxHits = 200;
const timeoutMs = 30_000;

const parameters = z.object({
  pattern: z.string().min(1).max(1_000).describe('JavaScript regular expression, matched line by line.'),
  path: z.string().default('.').describe('File or folder, relative to the workspace.'),
  glob: z.string().max(200).optional().describe('Only files like this, such as *.ts or test/**/*.{js,ts}.'),
  ignoreCase: z.boolean().default(false),
  limit: z.number().int().min(1).max(maxHits).default(50).describe('How many hits to show; all are counted.'),
});

/**
 * Searches in a thread of its own: a pattern that backtracks for ever is ended with its thread, on abort or after 30 s,
 * and never holds up the worker's heartbeats.
 */
export function searchTool(workspace: Workspace): Tool {
  return defineTool({
    name: 'search',
    description: 'Searches the text files of the workspace for a regular expression. Counts all matching lines.',
    parameters,
    replay: 'safe',
    timeoutMs: timeoutMs + 10_000,
    async execute({ pattern, path, glob, ignoreCase, limit }, { signal }) {
      const flags = ignoreCase ? 'i' : '';
      assertPattern(pattern, flags);
      const start = await workspace.existing(path);
      const isFile = (await stat(start)).isFile();
      const order: SearchOrder = { root: workspace.root, start, isFile, pattern, flags, glob: glob ?? null, limit };
      return renderOutcome(await runThread(order, signal));
    },
  });
}

function assertPattern(pattern: string, flags: string): void {
  try {
    new RegExp(pattern, flags);
  } catch (error) {
    throw new Error(`${(error as Error).message}. Escape special characters with \\ to search for them.`);
  }
}

async function runThread(order: SearchOrder, signal: AbortSignal): Promise<SearchOutcome> {
  signal.throwIfAborted();
  const thread = new Worker(new URL('./search-thread.ts', import.meta.url), { workerData: order });
  const { promise, resolve, reject } = Promise.withResolvers<SearchOutcome>();
  const late = setTimeout(() => {
    reject(new Error(`The search took longer than ${timeoutMs / 1000} s. Use a simpler pattern or a smaller folder.`));
  }, timeoutMs);
  const aborted = () => reject(signal.reason);
  signal.addEventListener('abort', aborted, { once: true });
  thread.once('message', resolve);
  thread.once('error', reject);
  thread.once('exit', (code) => reject(new Error(`The search thread ended with code ${code}.`)));
  try {
    return await promise;
  } finally {
    clearTimeout(late);
    signal.removeEventListener('abort', aborted);
    await thread.terminate();
  }
}

function renderOutcome({ hits, total, filesWithHits, filesSearched, unread, complete }: SearchOutcome): string {
  const lines = [`${total} matching lines in ${filesWithHits} of ${filesSearched} files`];
  for (const hit of hits) lines.push(`${hit.path}:${hit.line}: ${hit.text}`);
  if (hits.length < total) lines.push(`[${hits.length} of ${total} shown]`);
  if (unread > 0) lines.push(`[${unread} files not searched: binary, larger than 5 MB, or not readable]`);
  if (!complete) lines.push('[stopped: too many files; search a smaller folder]');
  return lines.join('\n');
}

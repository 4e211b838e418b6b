import { lstat, readdir, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { defineTool, type Tool } from 'everturn';
import { z } from 'zod';
import { skippedFolders, type Workspace } from '../workspace.ts';

const maxEntries = 500;

const parameters = z.object({
  path: z.string().default('.').describe('Folder, relative to the workspace.'),
  depth: z.number().int().min(1).max(5).default(1).describe('How many levels to show.'),
});

export function listTool(workspace: Workspace): Tool {
  return defineTool({
    name: 'list',
    description:
      `Lists a folder of the workspace with file sizes, at most ${maxEntries} entries. ` +
      `Leaves out ${skippedFolders.join(', ')} and says which of them are there.`,
    parameters,
    replay: 'safe',
    timeoutMs: 30_000,
    async execute({ path, depth }, { signal }) {
      const folder = await workspace.existing(path);
      if (!(await stat(folder)).isDirectory()) throw new Error(`"${path}" is not a folder. Use read for files.`);
      const listing: Listing = { lines: [], folders: 0, files: 0, skipped: new Set(), complete: true };
      await addFolder(listing, folder, '', depth, signal);
      return renderListing(workspace.show(folder), listing);
    },
  });
}

interface Listing {
  lines: string[];
  folders: number;
  files: number;
  skipped: Set<string>;
  complete: boolean;
}

async function addFolder(listing: Listing, folder: string, prefix: string, depth: number, signal: AbortSignal) {
  const entries = await readdir(folder, { withFileTypes: true });
  entries.sort((left, right) => (left.name < right.name ? -1 : 1));
  for (const entry of entries) {
    signal.throwIfAborted();
    const path = join(folder, entry.name);
    const name = prefix + entry.name;
    const shown = quoteIfOdd(name);
    if (entry.isDirectory() && skippedFolders.includes(entry.name)) {
      listing.skipped.add(entry.name);
      continue;
    }
    if (listing.lines.length >= maxEntries) {
      listing.complete = false;
      return;
    }
    if (entry.isDirectory()) {
      listing.folders += 1;
      listing.lines.push(`  ${shown}/`);
      // A folder that may not be opened is shown like an empty one.
      if (depth > 1) await addFolder(listing, path, `${name}/`, depth - 1, signal).catch(rethrowAbort(signal));
    } else if (entry.isSymbolicLink()) {
      listing.lines.push(`  ${shown} -> ${quoteIfOdd(await readlink(path).catch(() => '?'))}`);
    } else if (entry.isFile()) {
      listing.files += 1;
      const size = await lstat(path).then(
        (stats) => stats.size,
        () => 0,
      );
      listing.lines.push(`  ${shown}  ${size} bytes`);
    } else {
      listing.lines.push(`  ${shown}  (neither file nor folder)`);
    }
  }
}

function renderListing(name: string, { lines, folders, files, skipped, complete }: Listing): string {
  const text = [`Folder ${name}, folders: ${folders}, files: ${files}`, ...lines];
  if (!complete) text.push(`Stopped after ${maxEntries} entries. List a folder inside, or use a smaller depth.`);
  if (skipped.size > 0) text.push(`Not shown: ${[...skipped].join(', ')}`);
  return text.join('\n');
}

/** A name must stay on its line, or it could pose as other entries. */
function quoteIfOdd(name: string): string {
  return /^[\s"]|\s$|\p{Cc}| -> | {2}/u.test(name) ? JSON.stringify(name) : name;
}

function rethrowAbort(signal: AbortSignal): () => void {
  return () => signal.throwIfAborted();
}

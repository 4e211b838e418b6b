import { randomUUID } from 'node:crypto';
import { lstat, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { defineTool, type Tool } from 'everturn';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';

const maxCharacters = 1_000_000;

const parameters = z.object({
  path: z.string().min(1).describe('File, relative to the report folder.'),
  content: z.string().max(maxCharacters).describe('The whole content of the file.'),
});

/**
 * Writes into the report folder and nowhere else. Safe to repeat: it gives the whole content, and a rename puts it in
 * place, so a reader, or a worker that died in the middle, never leaves half a file under that name.
 */
export function writeTool(output: Workspace): Tool {
  return defineTool({
    name: 'write',
    description:
      'Writes a text file into the report folder, which is apart from the workspace. Replaces what was there.',
    parameters,
    replay: 'safe',
    executionMode: 'sequential',
    timeoutMs: 30_000,
    async execute({ path, content }, { signal }) {
      const wanted = await output.target(path);
      await mkdir(dirname(wanted), { recursive: true });
      // Once more, now that its folders are there.
      const target = await output.target(path);
      const isFolder = await lstat(target).then(
        (stats) => stats.isDirectory(),
        () => false,
      );
      if (isFolder) throw new Error(`"${path}" is a folder. Choose another name.`);
      signal.throwIfAborted();
      await replaceFile(target, content);
      const lines = content.split('\n').length - (content.endsWith('\n') ? 1 : 0);
      return `Wrote ${output.show(target)}: ${lines} lines, ${Buffer.byteLength(content)} bytes.`;
    },
  });
}

async function replaceFile(target: string, content: string): Promise<void> {
  const temporary = join(dirname(target), `.${basename(target)}.${randomUUID()}.tmp`);
  try {
    await writeFile(temporary, content, { flag: 'wx', flush: true });
    await rename(temporary, target);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

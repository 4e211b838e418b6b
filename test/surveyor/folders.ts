import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Tool } from 'everturn';
import { surveyorTools } from '../../examples/surveyor/tools.ts';

const made: string[] = [];

/** A folder with these files, by relative path; a path that ends in a slash is an empty folder. */
export function makeFolder(files: Record<string, string | Buffer> = {}): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'surveyor-test-')));
  made.push(root);
  for (const [path, content] of Object.entries(files)) {
    const target = join(root, path);
    mkdirSync(path.endsWith('/') ? target : dirname(target), { recursive: true });
    if (!path.endsWith('/')) writeFileSync(target, content);
  }
  return root;
}

export function removeFolders(): void {
  for (const root of made.splice(0)) rmSync(root, { recursive: true, force: true });
}

export interface Bench {
  workspace: string;
  output: string;
  tools: Tool[];
}

/** The surveyor's tools on a folder with these files, and an empty folder for the report. */
export function makeBench(files: Record<string, string | Buffer> = {}): Bench {
  const workspace = makeFolder(files);
  const output = makeFolder();
  return { workspace, output, tools: surveyorTools({ workspace, output }) };
}

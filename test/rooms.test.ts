import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';

// The arrows of the design: which room of src/ may import which. A type-only import is an arrow too: it ties two rooms
// together just as well, and becomes a real one with the removal of a word.

interface Import {
  /** The path below the repository for a relative import, else the name as it stands. */
  target: string;
  typeOnly: boolean;
}

const root = fileURLToPath(new URL('..', import.meta.url));

function importsOf(file: string, source: string): Import[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
  const statements = code.matchAll(/\b(?:import|export)\b\s*(type\b)?[^'";]*?\bfrom\s*['"]([^'"]+)['"]/g);
  const bare = code.matchAll(/\bimport\s*()['"]([^'"]+)['"]/g);
  const calls = code.matchAll(/\b(?:import|require)\s*\(\s*()['"]([^'"]+)['"]/g);
  return [...statements, ...bare, ...calls].map(([, type, name = '']) => ({
    target: name.startsWith('.') ? relative(root, join(root, dirname(file), name)) : name,
    typeOnly: type === 'type',
  }));
}

/** What a file imports against the arrows, in words. */
function broken(file: string, source: string): string[] {
  const room = file.split('/')[1];
  return importsOf(file, source)
    .filter((to) => !isAllowed(room, to))
    .map((to) => `${file} imports ${to.typeOnly ? 'types of ' : ''}${to.target}`);
}

function isAllowed(room: string | undefined, { target, typeOnly }: Import): boolean {
  const inside = (...folders: string[]) => folders.some((folder) => target.startsWith(`src/${folder}/`));
  if (room === 'workflows') return target === '@temporalio/workflow' || inside('common', 'workflows');
  if (room === 'common') {
    const piAi = target === '@earendil-works/pi-ai' || target.startsWith('@earendil-works/pi-ai/');
    return inside('common') || target === 'zod' || (piAi && typeOnly);
  }
  const outside = target.startsWith('.') || /^(test|examples|bench|scripts)\//.test(target);
  return !outside && target !== 'everturn' && !target.startsWith('everturn/');
}

test('every import of src/ follows the arrows', () => {
  const files = globSync('src/**/*.ts', { cwd: root });
  expect(files.length).toBeGreaterThan(10);
  expect(files.flatMap((file) => broken(file, readFileSync(join(root, file), 'utf8')))).toEqual([]);
});

describe('the scan', () => {
  test.each([
    ['src/workflows/run.ts', `import { readFile } from 'node:fs/promises';`],
    ['src/workflows/run.ts', `import { Client } from '@temporalio/client';`],
    ['src/workflows/run.ts', `import { z } from 'zod';`],
    ['src/workflows/run.ts', `import type { Store } from '../store/types.ts';`],
    ['src/workflows/run.ts', `export { open } from '../store/open.ts';`],
    ['src/workflows/run.ts', `export * from "../session/tree.ts";`],
    ['src/workflows/run.ts', `import {\n  a,\n  b,\n} from '../worker/index.ts';`],
    ['src/workflows/run.ts', `import '../worker/index.ts';`],
    ['src/workflows/run.ts', `const fs = await import('node:fs');`],
    ['src/workflows/deep/run.ts', `import { x } from '../../store/x.ts';`],
    ['src/common/ids.ts', `import { randomUUID } from 'node:crypto';`],
    ['src/common/ids.ts', `import type { Payload } from '@temporalio/common';`],
    ['src/common/ids.ts', `import { complete } from '@earendil-works/pi-ai';`],
    ['src/common/ids.ts', `import { type Usage } from '@earendil-works/pi-ai';`],
    ['src/common/ids.ts', `import type { Run } from '../workflows/run.ts';`],
    ['src/worker/worker.ts', `import { agent } from '../../examples/surveyor/agent.ts';`],
    ['src/worker/worker.ts', `import { helper } from '../../test/support/helper.ts';`],
    ['src/cli/main.ts', `import { createWorker } from 'everturn/worker';`],
  ])('refuses in %s: %s', (file, source) => {
    expect(broken(file, source)).toHaveLength(1);
  });

  test.each([
    ['src/workflows/run.ts', `import { sleep } from '@temporalio/workflow';`],
    ['src/workflows/deep/run.ts', `import { newId } from '../../common/ids.ts';\nimport { q } from '../queues.ts';`],
    ['src/common/messages.ts', `import type { Usage } from '@earendil-works/pi-ai';\nimport { z } from 'zod';`],
    ['src/common/messages.ts', `// import fs from 'node:fs';\n/* import { x } from '../store/x.ts'; */`],
    ['src/worker/worker.ts', `import { Worker } from '@temporalio/worker';\nimport { open } from '../store/open.ts';`],
  ])('accepts in %s: %s', (file, source) => {
    expect(broken(file, source)).toEqual([]);
  });
});

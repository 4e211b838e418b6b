import { mkdir, rename, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { EverturnError, errorText } from '../common/errors.ts';
import { payloadConverterPath } from '../temporal/data-converter.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
/** The `node_modules` that this package has its Temporal from. */
const ownModules = resolve(createRequire(import.meta.url).resolve('@temporalio/workflow/package.json'), '../../..');
const ownWorkflows = fileURLToPath(new URL(`../workflows/index.${extension}`, import.meta.url));

/**
 * Bundles a workflows file (default: Everturn's own, without policies) for `createWorker({ workflowBundle })`. Worth it
 * where many workers start: bundling takes 1 to 2 s.
 * @throws EverturnError `invalid_config` when the code imports what a workflow may not
 */
export async function bundleWorkflows(
  options: { workflowsPath?: string } = {},
  /** @internal Modules with workflow interceptors. */
  workflowInterceptorModules: string[] = [],
): Promise<{ code: string }> {
  const workflowsPath = options.workflowsPath ?? ownWorkflows;
  const printed: string[] = [];
  try {
    return await bundleWorkflowCode({
      workflowsPath,
      payloadConverterPath,
      workflowInterceptorModules,
      // What webpack says goes into the error, in short.
      logger: new DefaultLogger('ERROR', ({ message }) => printed.push(message)),
      // The bundle resolves packages as this process does: with the sources of this repository, or with what is installed.
      webpackConfigHook: (config) => ({
        ...config,
        resolve: {
          ...config.resolve,
          conditionNames: [...(extension === 'ts' ? ['everturn-source'] : []), '...'],
          // The generated entry stands beside the workflows file, where a strict package manager puts no Temporal.
          modules: [...(config.resolve?.modules ?? ['node_modules']), ownModules],
        },
      }),
    });
  } catch (error) {
    throw new EverturnError(
      'invalid_config',
      `The workflows file ${workflowsPath} cannot be bundled: ${firstProblem(printed) ?? errorText(error)}`,
      { cause: error },
    );
  }
}

/** "FILE: what is wrong" of webpack's first error. */
function firstProblem(printed: readonly string[]): string | undefined {
  const [, where, what] =
    /^\s*ERROR in (\S+).*\n(.+:\n.+|.+)$/m.exec(stripVTControlCharacters(printed.join('\n'))) ?? [];
  return what === undefined ? undefined : `${where}: ${what.trim().replace(/\s+/g, ' ')}`;
}

/** Writes a bundle to a file, whole or not at all, and returns what `createWorker` takes. */
export async function writeWorkflowBundle(
  path: string,
  options: { workflowsPath?: string } = {},
): Promise<{ codePath: string }> {
  const { code } = await bundleWorkflows(options);
  await mkdir(dirname(path), { recursive: true });
  const part = `${path}.${process.pid}`;
  await writeFile(part, code);
  await rename(part, path);
  return { codePath: path };
}

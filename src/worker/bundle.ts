import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { EverturnError, errorText } from '../common/errors.ts';
import { payloadConverterPath } from '../temporal/data-converter.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const ownWorkflows = fileURLToPath(new URL(`../workflows/index.${extension}`, import.meta.url));

/**
 * Bundles a workflows file (default: Everturn's own, without policies) for `createWorker({ workflowBundle })`. Worth it
 * where many workers start: bundling takes 1 to 2 s.
 * @throws EverturnError `invalid_config` when the code imports what a workflow may not
 */
export async function bundleWorkflows(options: { workflowsPath?: string } = {}): Promise<{ code: string }> {
  const workflowsPath = options.workflowsPath ?? ownWorkflows;
  try {
    return await bundleWorkflowCode({
      workflowsPath,
      payloadConverterPath,
      logger: new DefaultLogger('ERROR'),
      // The bundle resolves packages as this process does: with the sources of this repository, or with what is installed.
      webpackConfigHook: (config) => ({
        ...config,
        resolve: { ...config.resolve, conditionNames: [...(extension === 'ts' ? ['everturn-source'] : []), '...'] },
      }),
    });
  } catch (error) {
    throw new EverturnError(
      'invalid_config',
      `The workflows file ${workflowsPath} cannot be bundled: ${errorText(error)}`,
      { cause: error },
    );
  }
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

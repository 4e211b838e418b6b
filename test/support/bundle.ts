import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { payloadConverterPath } from '../../src/temporal/data-converter.ts';

const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));

/** Bundles the suite's workflows once, into a file that every worker of the suite starts from. Returns its path. */
export async function bundleTestWorkflows(): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath,
    payloadConverterPath,
    logger: new DefaultLogger('ERROR'),
    // As the product does it, plus the condition that turns `everturn/workflows` into this repository's sources.
    webpackConfigHook: (config) => ({
      ...config,
      resolve: { ...config.resolve, conditionNames: ['everturn-source', '...'] },
    }),
  });
  const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  const path = join(folder, 'workflows.cjs');
  await writeFile(path, code);
  return path;
}

export async function removeTestBundle(path: string): Promise<void> {
  await rm(dirname(path), { recursive: true, force: true });
}

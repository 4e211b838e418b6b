import { createRequire } from 'node:module';
import type { Models, Provider } from '@earendil-works/pi-ai';
import { builtinModels } from '@earendil-works/pi-ai/providers/all';
import { NativeConnection, Worker } from '@temporalio/worker';
import { z } from 'zod';
import { ControlWatcher, createActivities, Recent, type Runtime } from '../activities/index.ts';
import type { Agent } from '../agent/agent.ts';
import { EverturnError, errorText } from '../common/errors.ts';
import { defaultTaskQueue } from '../common/signals.ts';
import { ContextCache } from '../session/context-cache.ts';
import { openStore } from '../store/index.ts';
import type { Store } from '../store/types.ts';
import { DeltaWriter } from '../stream/delta-writer.ts';
import { type TemporalOptions, temporalTarget, unreachable } from '../temporal/address.ts';
import { dataConverterOf } from '../temporal/data-converter.ts';
import { bundleWorkflows } from './bundle.ts';

export interface WorkerOptions extends TemporalOptions {
  agents: readonly Agent[];
  /** Path of the store, or an open one (which stays open). Clients of the same sessions use the same. */
  store: string | Store;
  /** Default: "everturn". */
  taskQueue?: string;
  /** The file with the policies: `export * from 'everturn/workflows'` and definePolicy. Default: no policies. */
  workflowsPath?: string;
  /** A bundle made before by `bundleWorkflows` or `writeWorkflowBundle`, instead of workflowsPath. */
  workflowBundle?: { code: string } | { codePath: string };
  /** pi-ai's collection of models with its credentials. Default: all built-in providers, keys from the environment. */
  models?: Models;
  /** Providers added to the built-in ones. */
  providers?: readonly Provider[];
  /** Milliseconds that a tool has to return after its signal fired. Default: 5,000. */
  graceMs?: number;
  /** Live sessions to keep in memory; above it sessions are replayed at each turn. Default: 2,000. */
  maxSessions?: number;
  /** Effects at once in this worker. Default: 500. */
  maxEffects?: number;
  /** Hears of what no result can carry, such as lost live deltas. Default: a line on stderr. */
  onNotice?: (text: string) => void;
}

export interface EverturnWorker {
  readonly taskQueue: string;
  /** Works until `shutdown` is called; then finishes what it can, and closes what it opened. */
  run(): Promise<void>;
  /** Graceful: tools that run get the grace time, streams are left to another worker. */
  shutdown(): void;
}

const packageVersion = (createRequire(import.meta.url)('../../package.json') as { version: string }).version;

const optionsSchema = z.looseObject({
  agents: z
    .array(
      z.custom<Agent>(
        (value) => typeof (value as Agent)?.name === 'string' && 'retry' in (value as Agent),
        'must be made with defineAgent',
      ),
    )
    .min(1, 'needs at least one agent'),
  store: z.custom<string | Store>(
    (value) => (typeof value === 'string' ? value.length > 0 : typeof (value as Store)?.beginEffect === 'function'),
    'must be a path or a store',
  ),
  taskQueue: z.string().min(1).exactOptional(),
});

/**
 * A worker: it carries out sessions and effects of its agents. All workers of a task queue should have the same agents.
 * @throws EverturnError `invalid_config`, `temporal_unavailable`, `store_unavailable`
 */
export async function createWorker(options: WorkerOptions): Promise<EverturnWorker> {
  checkOptions(options);
  const { address, namespace } = temporalTarget(options);
  const bundle =
    'workflowBundle' in options && options.workflowBundle !== undefined
      ? options.workflowBundle
      : await bundleWorkflows(options.workflowsPath === undefined ? {} : { workflowsPath: options.workflowsPath });
  const store = typeof options.store === 'string' ? await openStore({ path: options.store }) : options.store;
  const closeStore = async () => {
    if (typeof options.store === 'string') await store.close();
  };
  const taskQueue = options.taskQueue ?? defaultTaskQueue;
  try {
    const connection = await NativeConnection.connect({ address }).catch((error: unknown) =>
      Promise.reject(unreachable(address, error)),
    );
    const runtime = runtimeOf(options, store);
    const worker = await Worker.create({
      connection,
      namespace,
      taskQueue,
      workflowBundle: bundle,
      activities: createActivities(runtime),
      dataConverter: dataConverterOf(store),
      // Stands in six events of each turn: the SDK's own default has 95 bytes.
      workerDeploymentOptions: {
        version: { deploymentName: 'everturn', buildId: packageVersion },
        useWorkerVersioning: false,
      },
      ...tuning(options),
    });
    return {
      taskQueue,
      shutdown: () => {
        if (worker.getState() === 'RUNNING') worker.shutdown();
      },
      run: () =>
        runWorker(worker, runtime, async () => {
          await connection.close();
          await closeStore();
        }),
    };
  } catch (error) {
    await closeStore();
    throw error;
  }
}

/** Measured settings (docs/performance.md): recovery within seconds, and no replay of sessions that are live. */
function tuning(options: WorkerOptions) {
  const maxEffects = options.maxEffects ?? 500;
  return {
    maxCachedWorkflows: options.maxSessions ?? 2_000,
    maxConcurrentActivityTaskExecutions: maxEffects,
    maxConcurrentLocalActivityExecutions: maxEffects,
    stickyQueueScheduleToStartTimeout: '800ms',
    maxHeartbeatThrottleInterval: '1s',
    defaultHeartbeatThrottleInterval: '1s',
    shutdownGraceTime: '1s',
    shutdownForceTime: (options.graceMs ?? 5_000) + 10_000,
  } as const;
}

function checkOptions(options: WorkerOptions): void {
  const parsed = optionsSchema.safeParse(options);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new EverturnError('invalid_config', `createWorker: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const names = options.agents.map((agent) => agent.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new EverturnError('invalid_config', `createWorker: two agents are called "${twice}"`);
}

function runtimeOf(options: WorkerOptions, store: Store): Runtime {
  const onNotice = options.onNotice ?? ((text: string) => process.stderr.write(`everturn: ${text}\n`));
  return {
    store,
    agents: new Map(options.agents.map((agent) => [agent.name, agent])),
    models: modelsOf(options),
    contexts: new ContextCache(store),
    stored: new Recent(10_000),
    frames: new Recent(2_000),
    deltas: new DeltaWriter(store, (count, error) => onNotice(`${count} live deltas were lost: ${errorText(error)}`)),
    controls: new ControlWatcher(store),
    graceMs: options.graceMs ?? 5_000,
    onNotice,
  };
}

function modelsOf({ models, providers = [] }: WorkerOptions): Models {
  if (models !== undefined && providers.length > 0) {
    throw new EverturnError('invalid_config', 'createWorker: give models or providers, not both');
  }
  if (models !== undefined) return models;
  const all = builtinModels();
  for (const provider of providers) all.setProvider(provider);
  return all;
}

const pruneIntervalMs = 60_000;
const keepDeltasMs = 10 * 60_000;

async function runWorker(worker: Worker, runtime: Runtime, close: () => Promise<void>): Promise<void> {
  const prune = setInterval(() => {
    runtime.store
      .pruneDeltas(Date.now() - keepDeltasMs)
      .catch((error: unknown) => runtime.onNotice(`Old live deltas stay: ${errorText(error)}`));
  }, pruneIntervalMs);
  try {
    await worker.run();
  } finally {
    clearInterval(prune);
    await runtime.deltas.flush();
    await close();
  }
}

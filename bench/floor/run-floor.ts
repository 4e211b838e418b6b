import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker, type WorkflowBundle } from '@temporalio/worker';
import { floorActivities } from './activities.ts';
import type { floorSession } from './workflows.ts';

export async function bundleFloor(): Promise<WorkflowBundle> {
  const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));
  return bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
}

/** Turns a second of the hand-written workflow. */
export type Floor = (size: { sessions: number; turns: number }) => Promise<number>;

/** A worker for the hand-written workflow, with the settings that Everturn's worker has, as long as `work` goes on. */
export async function withFloor<T>(
  address: string,
  workflowBundle: WorkflowBundle,
  work: (floor: Floor) => Promise<T>,
): Promise<T> {
  const taskQueue = `floor-${process.pid}-${Date.now()}`;
  const [connection, clientConnection] = await Promise.all([
    NativeConnection.connect({ address }),
    Connection.connect({ address }),
  ]);
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowBundle,
    activities: floorActivities,
    maxConcurrentActivityTaskExecutions: 500,
    maxCachedWorkflows: 2_000,
  });
  const client = new Client({ connection: clientConnection });
  let runs = 0;
  const run = (turns: number) => {
    runs += 1;
    const workflowId = `${taskQueue}-${runs}`;
    return client.workflow.execute<typeof floorSession>('floorSession', { workflowId, taskQueue, args: [turns] });
  };
  const floor: Floor = async ({ sessions, turns }) => {
    const started = performance.now();
    await Promise.all(Array.from({ length: sessions }, () => run(turns)));
    return (sessions * turns) / ((performance.now() - started) / 1_000);
  };
  try {
    return await worker.runUntil(() => work(floor));
  } finally {
    await Promise.all([connection.close(), clientConnection.close()]);
  }
}

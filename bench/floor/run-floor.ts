import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker, type WorkflowBundle } from '@temporalio/worker';
import { floorActivities } from './activities.ts';
import type { floorSession } from './workflows.ts';

export async function bundleFloor(): Promise<WorkflowBundle> {
  const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));
  return bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
}

/** Turns a second of the hand-written workflow, with the worker settings that Everturn's worker has. */
export async function runFloor(
  address: string,
  workflowBundle: WorkflowBundle,
  { sessions, turns }: { sessions: number; turns: number },
): Promise<number> {
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
  const run = (name: string, count: number) =>
    client.workflow.execute<typeof floorSession>('floorSession', {
      workflowId: `${taskQueue}-${name}`,
      taskQueue,
      args: [count],
    });
  try {
    return await worker.runUntil(async () => {
      await run('warm', 5);
      const started = performance.now();
      await Promise.all(Array.from({ length: sessions }, (_, index) => run(String(index), turns)));
      return (sessions * turns) / ((performance.now() - started) / 1_000);
    });
  } finally {
    await Promise.all([connection.close(), clientConnection.close()]);
  }
}

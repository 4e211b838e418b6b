import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { bundleWorkflowCode, DefaultLogger, NativeConnection, Worker } from '@temporalio/worker';
import { floorActivities } from './activities.ts';
import type { floorSession } from './workflows.ts';

/** Turns a second of the hand-written workflow, with the worker settings that Everturn's worker has. */
export async function runFloor(address: string, sessions: number, turns: number): Promise<{ turnsPerSecond: number }> {
  const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));
  const workflowBundle = await bundleWorkflowCode({ workflowsPath, logger: new DefaultLogger('ERROR') });
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
  const turnsPerSecond = await worker.runUntil(async () => {
    await run('warm', 5);
    const started = performance.now();
    await Promise.all(Array.from({ length: sessions }, (_, index) => run(String(index), turns)));
    return (sessions * turns) / ((performance.now() - started) / 1_000);
  });
  await Promise.all([connection.close(), clientConnection.close()]);
  return { turnsPerSecond };
}

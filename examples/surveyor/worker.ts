import { fileURLToPath } from 'node:url';
import { createWorker } from 'everturn/worker';
import { createSurveyor } from './agent.ts';

/** Reads SURVEYOR_STORE, TEMPORAL_ADDRESS and SURVEYOR_TASK_QUEUE, beside what the agent reads. */
async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const { agent, providers, note } = await createSurveyor(env);
  const worker = await createWorker({
    workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)),
    agents: [agent],
    providers,
    store: env.SURVEYOR_STORE || 'surveyor.db',
    address: env.TEMPORAL_ADDRESS || '127.0.0.1:7233',
    taskQueue: env.SURVEYOR_TASK_QUEUE || 'surveyor',
  });
  const stop = () => worker.shutdown();
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // Started by another program with a channel to it: that program's end is this one's.
  process.once('disconnect', stop);
  console.log(`worker ${process.pid} is ready, model ${note}`);
  await worker.run();
}

try {
  await main(process.env);
} catch (error) {
  console.error(`The surveyor's worker stopped: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  if (process.connected) process.disconnect();
}

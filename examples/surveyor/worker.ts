import { fileURLToPath } from 'node:url';
import { createWorker } from 'everturn/worker';
import { createSurveyor } from './agent.ts';

const workflowsPath = fileURLToPath(new URL('./workflows.ts', import.meta.url));

/** Reads EVERTURN_STORE, EVERTURN_TASK_QUEUE and TEMPORAL_ADDRESS as the command line does, beside what the agent reads. */
async function main(env: NodeJS.ProcessEnv): Promise<void> {
  const { agent, providers, note } = await createSurveyor(env);
  const worker = await createWorker({
    agents: [agent],
    providers,
    workflowsPath,
    store: env.EVERTURN_STORE || './.everturn/store',
    taskQueue: env.EVERTURN_TASK_QUEUE || 'everturn',
  });
  const stop = () => worker.shutdown();
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  console.log(`worker ${process.pid} is ready, model ${note}`);
  await worker.run();
}

/** A program that started it with a channel to it is gone, perhaps with the server: the work is durable, nobody waits. */
const parentGone = () => process.exit(1);

process.once('disconnect', parentGone);
try {
  await main(process.env);
} catch (error) {
  console.error(`The surveyor's worker stopped: ${(error as Error).message}`);
  process.exitCode = 1;
}
process.removeListener('disconnect', parentGone);
if (process.connected) process.disconnect();

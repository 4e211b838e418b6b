import { fileURLToPath } from 'node:url';
import { createWorker } from 'everturn/worker';
import { providers, shop } from './agent.ts';

const worker = await createWorker({
  agents: [shop],
  providers,
  store: '.everturn/store',
  workflowsPath: fileURLToPath(new URL('./workflows.ts', import.meta.url)),
});
console.log('The worker is ready. Ctrl-C ends it.');
await worker.run();

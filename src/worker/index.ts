/** Worker code: what carries out sessions. */
export { bundleWorkflows, writeWorkflowBundle } from './bundle.ts';
export type { EverturnWorker, WorkerOptions } from './create-worker.ts';
export { createWorker } from './create-worker.ts';

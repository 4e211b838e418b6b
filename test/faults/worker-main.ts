import { DefaultLogger, makeTelemetryFilterString, Runtime, Worker } from '@temporalio/worker';
import { openStore } from '../../src/store/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { createWorker } from '../../src/worker/index.ts';
import { Evidence } from '../support/evidence.ts';
import { waitFor } from '../support/wait-for.ts';
import { requestsFile } from '../support/worker-process.ts';
import { faultAgents } from './agents.ts';
import { fillable, holdable, holdableActivities, holdTasks, replyOf } from './hooks.ts';
import type { FaultWorkerConfig } from './worker-process.ts';

// A worker process of the fault matrix: the product's worker, with a kill point on either side of everything that it does.
// It is told everything by the environment and by files, and says that it is ready by a message to its parent.

const config = JSON.parse(process.env.EVERTURN_FAULT_WORKER ?? '') as FaultWorkerConfig;
const root = new Evidence(config.folder);
const of = (sessionId: string) => root.of(sessionId);

if (!process.env.EVERTURN_LOG) {
  Runtime.install({
    logger: new DefaultLogger('ERROR', () => undefined),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  });
}

/** Temporal's worker inside ours: its activities and workflow tasks get kill points too. */
const create = Worker.create;
let inner: Worker | undefined;
Worker.create = async (options) => {
  inner = await create.call(Worker, { ...options, activities: holdableActivities(options.activities, of) });
  holdTasks(inner, of);
  return inner;
};

const opening = {
  path: config.store,
  ...(config.busyTimeoutMs === undefined ? {} : { busyTimeoutMs: config.busyTimeoutMs }),
};
const store = fillable(await openStore(opening), await openStore({ ...opening, maxPages: 1 }), root);
const worker = await createWorker({
  agents: faultAgents(of),
  store: holdable(store, of),
  address: config.address,
  taskQueue: config.taskQueue,
  workflowBundle: { codePath: config.bundle },
  providers: [
    scriptedModel({
      replies: (request) => replyOf(of, request),
      requestLog: root.path(requestsFile),
      models: ['other'],
    }),
  ],
  onNotice: () => undefined,
});
// The parent is gone, so nobody would end this one.
process.on('disconnect', () => process.exit(1));
process.on('SIGTERM', async () => {
  worker.shutdown();
  await waitFor(() => inner?.getStatus().workflowPollerState === 'SHUTDOWN', { what: 'the end of polling' });
  process.send?.('polls no more');
});
const running = worker.run();
process.send?.('ready');
await running;
process.exit(0);

import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { openStore } from '../../src/store/index.ts';
import type { Commit, Fence, Store } from '../../src/store/types.ts';
import { type ScriptedReply, scriptedModel } from '../../src/testing/scripted-model.ts';
import { createWorker } from '../../src/worker/index.ts';
import { crashAgent } from './crash-agent.ts';
import { Evidence } from './evidence.ts';
import { holdCommitFile, repliesFile, requestsFile, type WorkerProcessConfig } from './worker-process.ts';

// A worker process of the crash tests: started by `startWorkerProcess`, ended by a signal, told everything by the
// environment and by files. It says that it is ready by a message to its parent.

const config = JSON.parse(process.env.EVERTURN_TEST_WORKER ?? '') as WorkerProcessConfig;
const evidence = new Evidence(config.folder);

if (!process.env.EVERTURN_LOG) {
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  });
}

/** Holds effects right before or after the commit that carries their result, as long as a file says so. */
function holdable(store: Store): Store {
  const hold = async (place: 'before' | 'after', { effect }: Fence, { result }: Commit) => {
    const file = holdCommitFile(place, effect);
    if (result === undefined || !evidence.has(file)) return;
    evidence.put(`${file}.waiting`);
    await evidence.untilGone(file);
  };
  return {
    ...store,
    async commit(fence, commit) {
      await hold('before', fence, commit);
      const done = await store.commit(fence, commit);
      await hold('after', fence, commit);
      return done;
    },
  };
}

const model = scriptedModel({
  replies: ({ reply }) => (JSON.parse(evidence.text(repliesFile)) as ScriptedReply[])[reply] ?? { error: 'the script is over' },
  requestLog: evidence.path(requestsFile),
});
const worker = await createWorker({
  agents: [crashAgent(evidence, config)],
  store: holdable(await openStore({ path: config.store })),
  address: config.address,
  taskQueue: config.taskQueue,
  workflowBundle: { codePath: config.bundle },
  providers: [model],
});
// The test process is gone, so nobody would end this one.
process.on('disconnect', () => process.exit(1));
process.on('SIGTERM', () => worker.shutdown());
const running = worker.run();
process.send?.('ready');
await running;
process.exit(0);

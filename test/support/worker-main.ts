import { DefaultLogger, makeTelemetryFilterString, Runtime, Worker } from '@temporalio/worker';
import { openStore } from '../../src/store/index.ts';
import type { Commit, Fence, Store } from '../../src/store/types.ts';
import { type ScriptedReply, type ScriptedRequest, scriptedModel } from '../../src/testing/scripted-model.ts';
import { createWorker } from '../../src/worker/index.ts';
import { crashAgents } from './crash-agents.ts';
import { Evidence } from './evidence.ts';
import { waitFor } from './wait-for.ts';
import {
  elsewhereQueue,
  holdCommitFile,
  holdRetriesFile,
  repliesFile,
  requestsFile,
  type WorkerProcessConfig,
} from './worker-process.ts';

// A worker process of the crash tests: started by `startWorkerProcess`, ended by a signal, told everything by the
// environment and by files. It says that it is ready by a message to its parent.

const config = JSON.parse(process.env.EVERTURN_TEST_WORKER ?? '') as WorkerProcessConfig;
const root = new Evidence(config.folder);

if (!process.env.EVERTURN_LOG) {
  Runtime.install({
    logger: new DefaultLogger('ERROR'),
    telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  });
}

/** Holds effects right before or after the commit that carries their result, as long as a file says so. */
function holdable(store: Store): Store {
  const hold = async (place: 'before' | 'after', { sessionId, effect }: Fence, { result, closeRun }: Commit) => {
    const evidence = root.of(sessionId);
    const file = holdCommitFile(place, closeRun === undefined ? effect : `${closeRun.runId}/end`);
    if ((result === undefined && closeRun === undefined) || !evidence.has(file)) return;
    const whom = evidence.text(file);
    if (whom !== '' && whom !== String(process.pid)) return;
    evidence.put(`${file}.waiting`);
    await evidence.untilGone(file);
  };
  return {
    ...store,
    async beginEffect(fence, first) {
      if (fence.attempt > 1) await root.of(fence.sessionId).untilGone(holdRetriesFile);
      return store.beginEffect(fence, first);
    },
    async commit(fence, commit) {
      await hold('before', fence, commit);
      const done = await store.commit(fence, commit);
      await hold('after', fence, commit);
      return done;
    },
  };
}

/** The script lies in the session's folder, and so do the files that it names. */
function reply({ reply, options }: ScriptedRequest): ScriptedReply {
  const evidence = root.of(options.sessionId ?? '');
  const script = JSON.parse(evidence.text(repliesFile)) as ScriptedReply[];
  const { holdUntilFile, ...rest } = script[reply] ?? { error: `invalid_request: the script has no reply ${reply}` };
  return holdUntilFile === undefined ? rest : { ...rest, holdUntilFile: evidence.path(holdUntilFile) };
}

/** Temporal's worker inside ours, to see when it has stopped to poll. */
const create = Worker.create;
let inner: Worker | undefined;
Worker.create = async (options) => {
  inner = await create.call(Worker, options);
  return inner;
};

const worker = await createWorker({
  agents: crashAgents({ of: (sessionId) => root.of(sessionId), elsewhere: elsewhereQueue(config.taskQueue) }),
  store: holdable(await openStore({ path: config.store })),
  address: config.address,
  taskQueue: config.elsewhere ? elsewhereQueue(config.taskQueue) : config.taskQueue,
  workflowBundle: { codePath: config.bundle },
  providers: [scriptedModel({ replies: reply, requestLog: root.path(requestsFile) })],
});
// The test process is gone, so nobody would end this one.
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

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { AgentClient, type SessionHandle } from '../../src/client/index.ts';
import type { Json } from '../../src/common/json.ts';
import { openStore } from '../../src/store/index.ts';
import type { Store } from '../../src/store/types.ts';
import { readRequests, type ScriptedReply, type ScriptedRequest } from '../../src/testing/scripted-model.ts';
import type { CrashAgentOptions } from './crash-agent.ts';
import { Evidence } from './evidence.ts';
import { expectInvariants } from './invariants.ts';
import { logWords, transcript, words } from './transcript.ts';
import { waitFor } from './wait-for.ts';
import { repliesFile, requestsFile, startWorkerProcess, type WorkerProcess } from './worker-process.ts';

export interface CrashStageOptions extends CrashAgentOptions {
  replies: readonly ScriptedReply[];
  /** Default: the suite's server. */
  address?: string;
}

/** A session of the agent `crash`, a store of its own, and worker processes to be killed. */
export interface CrashStage {
  readonly evidence: Evidence;
  readonly store: Store;
  readonly client: AgentClient;
  readonly session: SessionHandle;
  readonly sessionId: string;
  /** Starts one more worker. `taskQueue`: another one than the session's. */
  startWorker(taskQueue?: string): Promise<WorkerProcess>;
  /** Replaces the script from the next request on. */
  script(replies: readonly ScriptedReply[]): void;
  /** Every request that the model got, from whatever process. */
  requests(): ScriptedRequest[];
  /** The messages of a request in words. */
  asked(request: number): string[];
  /** Waits until a worker has come to where it writes this file. */
  reached(file: string): Promise<void>;
  /** Waits until so many calls of a reply are settled. */
  settled(entryId: string, count: number): Promise<void>;
  /** Waits for the true result of a call that was settled otherwise. */
  lateResult(entryId: string, index: number): Promise<Json>;
  /** Waits until the session's workflow has completed. */
  closed(): Promise<void>;
  /** Ends the session's workflow from outside. */
  terminate(): Promise<void>;
  /** The log of a run in words. */
  log(runId?: string): Promise<string[]>;
  transcript(): Promise<string[]>;
  /** Checks I1, I2, I4 and I7, given the texts of all accepted user messages. */
  check(accepted: readonly string[]): Promise<void>;
  /** Kills the workers and removes everything. Safe to call twice. */
  end(): Promise<void>;
}

let stages = 0;

export async function startCrashStage(options: CrashStageOptions): Promise<CrashStage> {
  const { replies, address = process.env.EVERTURN_TEST_TEMPORAL ?? '', ...agent } = options;
  const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  const evidence = new Evidence(folder);
  const script = (next: readonly ScriptedReply[]) => evidence.put(repliesFile, JSON.stringify(next));
  script(replies);
  stages += 1;
  const sessionId = `crash-${process.pid}-${stages}`;
  const config = {
    ...agent,
    address,
    store: join(folder, 'store'),
    taskQueue: sessionId,
    bundle: process.env.EVERTURN_TEST_BUNDLE ?? '',
    folder,
  };
  const store = await openStore({ path: config.store });
  const client = await AgentClient.connect({ address, store, taskQueue: config.taskQueue });
  const session = client.session(sessionId, { agent: 'crash' });
  const connection = await Connection.connect({ address });
  const workflow = new Client({ connection }).workflow.getHandle(sessionId);
  const workers: WorkerProcess[] = [];
  let ended: Promise<void> | undefined;
  const requests = () => readRequests(evidence.path(requestsFile));
  return {
    evidence,
    store,
    client,
    session,
    sessionId,
    script,
    requests,
    async startWorker(taskQueue = config.taskQueue) {
      const worker = await startWorkerProcess({ ...config, taskQueue });
      workers.push(worker);
      return worker;
    },
    asked: (request) => words(requests()[request]?.messages as never),
    reached: async (file) => void (await waitFor(() => evidence.has(file), { what: file })),
    async settled(entryId, count) {
      const enough = async () => {
        const batch = await store.readBatch(sessionId, entryId);
        return batch !== undefined && batch.calls.filter((call) => call.settled !== undefined).length >= count;
      };
      await waitFor(enough, { what: `${count} settled calls` });
    },
    async lateResult(entryId, index) {
      const read = async () => (await store.readBatch(sessionId, entryId))?.calls[index]?.lateResult;
      return waitFor(read, { what: 'the late result' });
    },
    closed: async () =>
      void (await waitFor(async () => (await workflow.describe()).status.name !== 'RUNNING', { what: 'the end of the workflow' })),
    terminate: async () => void (await workflow.terminate()),
    log: (runId) => logWords(store, sessionId, runId),
    transcript: async () => words(await transcript(store, sessionId)),
    check: (accepted) => expectInvariants({ store, sessionId, requests: requests(), accepted }),
    end() {
      ended ??= (async () => {
        await Promise.all(workers.map((worker) => worker.kill9()));
        await client.close();
        await connection.close();
        await store.close();
        await rm(folder, { recursive: true, force: true });
      })();
      return ended;
    },
  };
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AgentClient, type SessionHandle } from '../../src/client/index.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { readRequests, type ScriptedRequest } from '../../src/testing/scripted-model.ts';
import { Evidence } from '../support/evidence.ts';
import { repliesFile, requestsFile } from '../support/worker-process.ts';
import type { Scenario } from './scenarios.ts';
import { FaultWorker, type FaultWorkerConfig } from './worker-process.ts';

export interface Ground {
  /** Address of the Temporal server. */
  address: string;
  /** Path of the suite's workflow bundle. */
  bundle: string;
}

/** A session of the matrix, with everything that is known about it from outside. */
export interface FaultSession {
  sessionId: string;
  session: SessionHandle;
  evidence: Evidence;
  store: Store;
  /** Every request that the model got, from whatever process. */
  requests(): ScriptedRequest[];
}

/** One store with a client, and workers to be struck. The sessions of one wave share it. */
export class FaultStage {
  readonly store: Store;
  readonly storePath: string;
  readonly address: string;
  private readonly ground: Ground;
  readonly folder: string;
  private readonly client: AgentClient;
  private readonly taskQueue: string;
  private readonly workers: FaultWorker[] = [];

  static async open(ground: Ground): Promise<FaultStage> {
    const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
    const taskQueue = `faults-${folder.slice(-6)}`;
    const storePath = join(folder, 'store');
    const store = await openStore({ path: storePath });
    const { address } = ground;
    const client = await AgentClient.connect({ address, store, taskQueue, answerTimeoutMs: 170_000 });
    return new FaultStage({ ground, folder, client, taskQueue, store, storePath });
  }

  private constructor(
    parts: Pick<FaultStage, 'store' | 'storePath' | 'folder'> & {
      ground: Ground;
      client: AgentClient;
      taskQueue: string;
    },
  ) {
    this.store = parts.store;
    this.storePath = parts.storePath;
    this.ground = parts.ground;
    this.address = parts.ground.address;
    this.folder = parts.folder;
    this.client = parts.client;
    this.taskQueue = parts.taskQueue;
  }

  async startWorker(options: Pick<FaultWorkerConfig, 'busyTimeoutMs' | 'clockMs'> = {}): Promise<FaultWorker> {
    const { ground, storePath, folder, taskQueue } = this;
    const worker = await FaultWorker.start({ ...ground, store: storePath, taskQueue, folder, ...options });
    this.workers.push(worker);
    return worker;
  }

  session(id: number, { agent, replies }: Scenario): FaultSession {
    const sessionId = `${this.taskQueue}-${id}`;
    const evidence = new Evidence(this.folder).of(sessionId);
    evidence.put(repliesFile, JSON.stringify(replies));
    const log = join(this.folder, requestsFile);
    return {
      sessionId,
      session: this.client.session(sessionId, { agent }),
      evidence,
      store: this.store,
      requests: () => readRequests(log).filter(({ options }) => options.sessionId === sessionId),
    };
  }

  /** Kills the workers and removes everything. */
  async end(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.kill9()));
    await this.client.close();
    await this.store.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

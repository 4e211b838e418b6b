import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { AgentClient, type SessionHandle } from '../../src/client/index.ts';
import type { Json } from '../../src/common/json.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { readRequests, type ScriptedReply, type ScriptedRequest } from '../../src/testing/scripted-model.ts';
import type { CrashAgent } from './crash-agents.ts';
import { Evidence } from './evidence.ts';
import { expectInvariants } from './invariants.ts';
import { logWords, transcript, words } from './transcript.ts';
import { waitFor } from './wait-for.ts';
import { repliesFile, requestsFile, startWorkerProcess, type WorkerProcess } from './worker-process.ts';

/**
 * A store, a task queue, a client, and worker processes to be killed. Many sessions share it: when one worker is killed,
 * each stands at another place.
 */
export class CrashStage {
  readonly store: Store;
  private readonly folder: string;
  private readonly client: AgentClient;
  private readonly temporal: Client;
  private readonly address: string;
  private readonly taskQueue: string;
  private readonly workers: WorkerProcess[] = [];
  private ended: Promise<void> | undefined;

  private constructor(parts: {
    store: Store;
    folder: string;
    client: AgentClient;
    temporal: Client;
    address: string;
    taskQueue: string;
  }) {
    this.store = parts.store;
    this.folder = parts.folder;
    this.client = parts.client;
    this.temporal = parts.temporal;
    this.address = parts.address;
    this.taskQueue = parts.taskQueue;
  }

  /** @param address default: the suite's server */
  static async open(address = process.env.EVERTURN_TEST_TEMPORAL ?? ''): Promise<CrashStage> {
    const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
    const taskQueue = `crash-${folder.slice(-6)}`;
    const store = await openStore({ path: join(folder, 'store') });
    const client = await AgentClient.connect({ address, store, taskQueue });
    const temporal = new Client({ connection: await Connection.connect({ address }) });
    return new CrashStage({ store, folder, client, temporal, address, taskQueue });
  }

  /** Starts one more worker. `elsewhere`: for the tool `effect_elsewhere` alone. */
  async startWorker(options: { elsewhere?: boolean } = {}): Promise<WorkerProcess> {
    const { folder, address, taskQueue } = this;
    const worker = await startWorkerProcess({
      address,
      taskQueue,
      folder,
      store: join(folder, 'store'),
      bundle: process.env.EVERTURN_TEST_BUNDLE ?? '',
      elsewhere: options.elsewhere ?? false,
    });
    this.workers.push(worker);
    return worker;
  }

  /** A session with a script of its own. Its name is part of its id, and so must be new. */
  session(name: string, agent: CrashAgent, replies: readonly ScriptedReply[]): CrashSession {
    const sessionId = `${this.taskQueue}-${name.replaceAll(' ', '-')}`;
    const evidence = new Evidence(this.folder).of(sessionId);
    const session = new CrashSession({
      session: this.client.session(sessionId, { agent }),
      evidence,
      store: this.store,
      requestLog: join(this.folder, requestsFile),
      workflow: this.temporal.workflow.getHandle(sessionId),
    });
    session.script(replies);
    return session;
  }

  /** Kills the workers and removes everything. Safe to call twice. */
  end(): Promise<void> {
    this.ended ??= (async () => {
      await Promise.all(this.workers.map((worker) => worker.kill9()));
      await this.client.close();
      await this.temporal.connection.close();
      await this.store.close();
      await rm(this.folder, { recursive: true, force: true });
    })();
    return this.ended;
  }
}

interface CrashSessionParts {
  session: SessionHandle;
  evidence: Evidence;
  store: Store;
  requestLog: string;
  workflow: WorkflowHandle;
}

/** A session on the stage, with everything that is known about it from outside. */
export class CrashSession {
  readonly session: SessionHandle;
  readonly sessionId: string;
  readonly evidence: Evidence;
  readonly workflow: WorkflowHandle;
  private readonly store: Store;
  private readonly requestLog: string;
  private readonly accepted: string[] = [];

  constructor(parts: CrashSessionParts) {
    this.session = parts.session;
    this.sessionId = parts.session.sessionId;
    this.evidence = parts.evidence;
    this.store = parts.store;
    this.requestLog = parts.requestLog;
    this.workflow = parts.workflow;
  }

  /** Prompts, by default with the session's id for text. The text must end up in the transcript, once. */
  async prompt(text = this.sessionId): Promise<string> {
    this.accepted.push(text);
    const { runId } = await this.session.prompt(text, { runId: `r${this.accepted.length}` });
    return runId;
  }

  async steer(text: string): Promise<void> {
    this.accepted.push(text);
    await this.session.steer(text);
  }

  /** How a run ended, in words: its status and text, and what was wrong. */
  async ended(runId: string): Promise<string> {
    const { status, text, error } = await this.session.result(runId);
    return `${status}: ${text}${error === undefined ? '' : `(${error.code}: ${error.message})`}`;
  }

  /** Replaces the script from the next request on. */
  script(replies: readonly ScriptedReply[]): void {
    this.evidence.put(repliesFile, JSON.stringify(replies));
  }

  /** Every request that the model got, from whatever process. */
  requests(): ScriptedRequest[] {
    return readRequests(this.requestLog).filter((request) => request.options.sessionId === this.sessionId);
  }

  /** The messages of a request in words, with `PROMPT` for the session's id. */
  asked(request: number): string[] {
    return this.named(words(this.requests()[request]?.messages ?? []));
  }

  async transcript(): Promise<string[]> {
    return this.named(words(await transcript(this.store, this.sessionId)));
  }

  /** The log of a run, or the whole, in words. */
  log(runId?: string): Promise<string[]> {
    return logWords(this.store, this.sessionId, runId);
  }

  /** `what` of each line of a log of the evidence. */
  noted(log: string): unknown[] {
    return this.evidence.read(log).map((line) => line.what);
  }

  /** Waits until a worker has come to where it writes this file. */
  async reached(file: string): Promise<void> {
    await waitFor(() => this.evidence.has(file), { what: `${this.sessionId}: ${file}` });
  }

  /** The text that live readers got from an attempt of a reply. */
  async streamed(entryId: string, attempt: number): Promise<string> {
    const deltas = await this.store.readDeltas(this.sessionId, 0, 10_000);
    const own = deltas.filter((each) => each.entryId === entryId && each.attempt === attempt);
    return own.map(({ delta }) => (delta.type === 'text_delta' ? delta.delta : '')).join('');
  }

  /** Waits until so many calls of a reply are settled. */
  async settled(entryId: string, count: number): Promise<void> {
    const enough = async () => {
      const batch = await this.store.readBatch(this.sessionId, entryId);
      return batch !== undefined && batch.calls.filter((call) => call.settled !== undefined).length >= count;
    };
    await waitFor(enough, { what: `${this.sessionId}: ${count} settled calls` });
  }

  /** Waits until Temporal has given up on the first attempt of an activity that is pending. */
  async retried(): Promise<void> {
    const isRetried = async () =>
      (await this.workflow.describe()).raw.pendingActivities?.some(({ attempt }) => (attempt ?? 1) > 1) === true;
    await waitFor(isRetried, { what: `${this.sessionId}: a second attempt` });
  }

  /** Waits for the true result of a call that was settled otherwise. */
  async lateResult(entryId: string, index: number): Promise<Json> {
    const read = async () => (await this.store.readBatch(this.sessionId, entryId))?.calls[index]?.lateResult;
    return waitFor(read, { what: 'the late result' });
  }

  /** Waits until the session's workflow has completed. */
  async closed(): Promise<void> {
    const isClosed = async () => (await this.workflow.describe()).status.name !== 'RUNNING';
    await waitFor(isClosed, { what: `${this.sessionId}: the end of the workflow` });
  }

  /** Resets the workflow to its first or its last task, so that it does everything after it again. */
  async reset(to: 'first' | 'last'): Promise<void> {
    const { workflowId, client } = this.workflow;
    const { namespace } = client.options;
    const { runId } = await this.workflow.describe();
    const execution = { workflowId, runId };
    const { history } = await client.workflowService.getWorkflowExecutionHistory({ namespace, execution });
    const tasks = history?.events?.filter((event) => event.workflowTaskCompletedEventAttributes) ?? [];
    const workflowTaskFinishEventId = tasks.at(to === 'first' ? 0 : -1)?.eventId ?? null;
    const requestId = `${runId}-${to}`;
    await client.workflowService.resetWorkflowExecution({
      namespace,
      workflowExecution: execution,
      workflowTaskFinishEventId,
      requestId,
      reason: 'a test',
    });
  }

  /** Checks the invariants of the design: I1, I2, I4 and I7. */
  async check(): Promise<void> {
    const { store, sessionId, accepted } = this;
    await expectInvariants({ store, sessionId, requests: this.requests(), accepted });
  }

  private named(lines: string[]): string[] {
    return lines.map((line) => line.replaceAll(this.sessionId, 'PROMPT'));
  }
}

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { Client, Connection, type WorkflowHandle } from '@temporalio/client';
import { type Agent, type AgentOptions, defineAgent } from '../../src/agent/agent.ts';
import { AgentClient, type ClientOptions, type SessionHandle, type SessionOptions } from '../../src/client/index.ts';
import type { SessionEvent } from '../../src/common/events.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { type ScriptedReply, type ScriptedRequest, scriptedModel } from '../../src/testing/scripted-model.ts';
import { createWorker, type WorkerOptions } from '../../src/worker/index.ts';
import { eventWords } from './event-words.ts';
import { Evidence } from './evidence.ts';
import { Gates } from './gates.ts';
import { expectInvariants } from './invariants.ts';
import { transcript, words } from './transcript.ts';
import { waitFor } from './wait-for.ts';

/** A reply of the script. `holdUntilFile` names a hold of the talk; `gate` is passed before the reply begins. */
export type TalkReply = ScriptedReply & { gate?: string };

export interface HarnessOptions {
  agents: readonly Agent[] | (() => readonly Agent[]);
  /** Default: the suite's server. */
  address?: () => string;
  /** Stands between worker and store. */
  wrapStore?: (store: Store) => Store;
  /** Opens the store. Default: a fresh one in a folder of its own. */
  open?: (folder: string) => Promise<Store>;
  worker?: Partial<Pick<WorkerOptions, 'graceMs' | 'maxSessions' | 'onNotice' | 'providers'>>;
  client?: Partial<Pick<ClientOptions, 'answerTimeoutMs'>>;
}

/** An agent of the scripted model, with short pauses. */
export function testAgent(name: string, options: Partial<AgentOptions> = {}): Agent {
  return defineAgent({
    name,
    model: 'scripted/main',
    systemPrompt: 'You are under test.',
    retry: { baseDelayMs: 50 },
    ...options,
  });
}

/**
 * A worker and a client in this process for all tests of a file, on the suite's Temporal server, with a store and a task
 * queue of their own. After each test the invariants of the design are checked for every session that it used.
 */
export class Harness {
  store!: Store;
  client!: AgentClient;
  /** Temporal's own client, without Everturn's converter: for what people and programs do by hand. */
  temporal!: Client;
  folder!: string;
  readonly taskQueue = `loop-${randomUUID()}`;
  readonly gates = new Gates();
  readonly requests: ScriptedRequest[] = [];
  private readonly scripts = new Map<string, readonly TalkReply[] | ((request: ScriptedRequest) => TalkReply)>();
  private talks: Talk[] = [];
  /** What ends the workers, by their order. */
  endings: (() => Promise<void>)[] = [];

  private readonly options: HarnessOptions;

  constructor(options: HarnessOptions) {
    this.options = options;
  }

  get address(): string {
    return this.options.address?.() ?? process.env.EVERTURN_TEST_TEMPORAL ?? '';
  }

  async start(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
    this.store = await (this.options.open ?? ((folder) => openStore({ path: join(folder, 'store') })))(this.folder);
    const { address, taskQueue, store } = this;
    this.client = await AgentClient.connect({ address, store, taskQueue, ...this.options.client });
    const connection = await Connection.connect({ address });
    this.temporal = new Client({ connection });
    const stopWorker = await this.startWorker();
    this.endings = [stopWorker, () => this.client.close(), () => connection.close(), () => store.close()];
  }

  /** Starts a worker, and returns what ends it in good order. */
  async startWorker(overrides: Partial<WorkerOptions> = {}): Promise<() => Promise<void>> {
    const { agents, wrapStore = (store) => store } = this.options;
    const { providers = [], ...options } = this.options.worker ?? {};
    const worker = await createWorker({
      agents: typeof agents === 'function' ? agents() : agents,
      store: wrapStore(this.store),
      address: this.address,
      taskQueue: this.taskQueue,
      workflowBundle: { codePath: process.env.EVERTURN_TEST_BUNDLE ?? '' },
      providers: [this.model(), ...providers],
      ...options,
      ...overrides,
    });
    const running = worker.run();
    running.catch((error: unknown) => process.stderr.write(`The worker of the tests broke: ${error}\n`));
    return async () => {
      worker.shutdown();
      await running;
    };
  }

  /** A new session with the replies that the model will give in it. */
  talk(
    agent: string,
    replies: readonly TalkReply[] | ((request: ScriptedRequest) => TalkReply) = [],
    options: Omit<SessionOptions, 'agent'> = {},
  ): Talk {
    // Unique on the suite's server, where the sessions of earlier files may linger.
    const sessionId = `s-${randomUUID().slice(-12)}`;
    this.scripts.set(sessionId, replies);
    const talk = new Talk(this, this.client.session(sessionId, { agent, ...options }));
    this.talks.push(talk);
    return talk;
  }

  async check(): Promise<void> {
    const talks = this.talks.filter((talk) => talk.checked);
    this.talks = [];
    for (const { sessionId, accepted, requests } of talks) {
      if ((await this.store.readSession(sessionId)) === undefined) continue;
      await expectInvariants({ store: this.store, sessionId, requests, accepted });
    }
  }

  async end(): Promise<void> {
    this.gates.openAll();
    for (const ending of this.endings) await ending();
    await rm(this.folder, { recursive: true, force: true });
  }

  private model() {
    return scriptedModel({
      models: ['other'],
      replies: async (request) => {
        this.requests.push(request);
        const { sessionId = '' } = request.options;
        const script = this.scripts.get(sessionId) ?? [];
        const reply = typeof script === 'function' ? script(request) : script[request.reply];
        if (reply === undefined) return { error: `invalid_request: the script has no reply ${request.reply}` };
        const { gate, holdUntilFile, ...rest } = reply;
        if (gate !== undefined) await this.gates.pass(`${sessionId}/${gate}`);
        return holdUntilFile === undefined
          ? rest
          : { ...rest, holdUntilFile: join(this.folder, `${sessionId}.${holdUntilFile}`) };
      },
    });
  }
}

/** A session under test, with what the model and its readers saw of it. */
export class Talk {
  readonly session: SessionHandle;
  readonly sessionId: string;
  /** Texts of user messages that must stand in the transcript once. */
  readonly accepted: string[] = [];
  /** False: the invariants are not checked after the test. */
  checked = true;
  private readonly harness: Harness;
  private readonly holds: Evidence;

  constructor(harness: Harness, session: SessionHandle) {
    this.harness = harness;
    this.session = session;
    this.sessionId = session.sessionId;
    this.holds = new Evidence(harness.folder);
  }

  /** The requests that the model got. */
  get requests(): ScriptedRequest[] {
    return this.harness.requests.filter((request) => request.options.sessionId === this.sessionId);
  }

  /** The messages of each request in words. */
  get asked(): string[][] {
    return this.requests.map((request) => words(request.messages as never));
  }

  /** Its workflow through Temporal's own client. */
  get workflow(): WorkflowHandle {
    return this.harness.temporal.workflow.getHandle(this.sessionId);
  }

  /** The same session as another client sees it. */
  as(options: SessionOptions): SessionHandle {
    return this.harness.client.session(this.sessionId, options);
  }

  /** Waits until a tool or a hook has come to its gate. */
  reached(gate: string): Promise<void> {
    return this.harness.gates.reached(`${this.sessionId}/${gate}`);
  }

  open(gate: string): void {
    this.harness.gates.open(`${this.sessionId}/${gate}`);
  }

  /** Waits until the stream has come to its hold. */
  async held(hold: string): Promise<void> {
    await waitFor(() => this.holds.has(`${this.sessionId}.${hold}.waiting`), { what: `hold ${hold}` });
  }

  release(hold: string): void {
    this.holds.put(`${this.sessionId}.${hold}`);
  }

  async raw(options: { from?: number } = {}): Promise<SessionEvent[]> {
    return Array.fromAsync(this.session.events({ ...options, follow: false }));
  }

  /** The events of the log in words, of one run or of all. */
  async events(runId?: string): Promise<string[]> {
    return eventWords((await this.raw()).filter((event) => runId === undefined || event.runId === runId));
  }

  async transcript(): Promise<string[]> {
    return words(await transcript(this.harness.store, this.sessionId));
  }

  /** Waits until the workflow has completed. */
  async closed(): Promise<void> {
    await waitFor(async () => (await this.workflow.describe()).status.name !== 'RUNNING', {
      what: 'the end of the workflow',
    });
  }

  /** Waits until the log has an event that fits. */
  async logged(fits: (event: SessionEvent) => boolean, what: string): Promise<SessionEvent> {
    return waitFor(async () => (await this.raw()).find(fits), { what });
  }
}

/** The harness of a test file: started before its tests, ended after them. */
export function useHarness(options: HarnessOptions): Harness {
  const harness = new Harness(options);
  beforeAll(() => harness.start());
  afterEach(() => harness.check());
  afterAll(() => harness.end());
  return harness;
}

import { Client, Connection } from '@temporalio/client';
import { EverturnError } from '../common/errors.ts';
import { defaultTaskQueue, idSchema, sessionInputSchema } from '../common/signals.ts';
import { openStore } from '../store/index.ts';
import type { SessionRow, Store } from '../store/types.ts';
import { type TemporalOptions, temporalTarget, unreachable } from '../temporal/address.ts';
import { dataConverterOf } from '../temporal/data-converter.ts';
import { interceptors } from './closed-channel.ts';
import { RunWatcher } from './run-watcher.ts';
import { SessionHandle, type SessionOptions } from './session-handle.ts';

export interface ClientOptions extends TemporalOptions {
  /** Path of the store, or an open one (which stays open): the same as the workers'. */
  store: string | Store;
  /** Default: "everturn". */
  taskQueue?: string;
  /** Milliseconds to wait for the Temporal server. Default: 5,000. */
  connectTimeoutMs?: number;
  /** Milliseconds that a worker has to answer a prompt or a change of settings. Default: 30,000. */
  answerTimeoutMs?: number;
}

/** What session handles share. */
export interface ClientContext {
  temporal: Client;
  store: Store;
  runs: RunWatcher;
  address: string;
  taskQueue: string;
  answerTimeoutMs: number;
}

/** Sessions from outside: any number of clients, in any process that reaches the Temporal server and the store. */
export class AgentClient {
  private readonly context: ClientContext;
  private readonly closing: () => Promise<void>;

  private constructor(context: ClientContext, closing: () => Promise<void>) {
    this.context = context;
    this.closing = closing;
  }

  /** @throws EverturnError `temporal_unavailable`, `store_unavailable`, `invalid_config` */
  static async connect(options: ClientOptions): Promise<AgentClient> {
    const { address, namespace } = temporalTarget(options);
    if (options?.store === undefined || options.store === '') {
      throw new EverturnError(
        'invalid_config',
        'AgentClient.connect: store: give the path of the store that the workers use',
      );
    }
    const connectTimeout = options.connectTimeoutMs ?? 5_000;
    const connection = await Connection.connect({ address, connectTimeout, interceptors }).catch((error: unknown) =>
      Promise.reject(unreachable(address, error)),
    );
    try {
      const store = typeof options.store === 'string' ? await openStore({ path: options.store }) : options.store;
      const temporal = new Client({ connection, namespace, dataConverter: dataConverterOf(store) });
      const taskQueue = options.taskQueue ?? defaultTaskQueue;
      const runs = new RunWatcher(store);
      const answerTimeoutMs = options.answerTimeoutMs ?? 30_000;
      const context = { temporal, store, runs, address, taskQueue, answerTimeoutMs };
      return new AgentClient(context, async () => {
        await connection.close();
        if (typeof options.store === 'string') await store.close();
      });
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /**
   * A handle on a session, which the first prompt makes. Nothing is sent yet. The options count for a new session; a
   * session that is there keeps its own settings.
   * @throws EverturnError `invalid_argument` for an id or options of the wrong shape
   */
  session(sessionId: string, options: SessionOptions): SessionHandle {
    if (!idSchema.safeParse(sessionId).success) {
      throw new EverturnError(
        'invalid_argument',
        `"${sessionId}" is no session id: 1 to 200 letters, digits or . _ : @ -, beginning with a letter or digit.`,
      );
    }
    const parsed = sessionInputSchema.omit({ carry: true }).safeParse(options);
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      throw new EverturnError(
        'invalid_argument',
        `Session "${sessionId}": ${issue?.path.join('.')}: ${issue?.message}`,
      );
    }
    return new SessionHandle(this.context, sessionId, options);
  }

  /** The sessions of the store, the last changed first. */
  async sessions(options: { limit?: number } = {}): Promise<SessionRow[]> {
    return this.context.store.listSessions(options);
  }

  get store(): Store {
    return this.context.store;
  }

  async close(): Promise<void> {
    await this.closing();
  }
}

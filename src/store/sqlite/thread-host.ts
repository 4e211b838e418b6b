import { Worker } from 'node:worker_threads';
import { EverturnError } from '../../common/errors.ts';
import type { DeltaOrder } from './delta-order.ts';
import { type Answer, type Call, decodeError, decodeValue, encodeArgs, type ThreadOptions } from './protocol.ts';

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * The main side of a store thread. Calls are answered in any order. The thread keeps the process alive only while a call
 * waits for it; when it ends by itself, every waiting and later call fails with `store_unavailable`.
 */
export class ThreadHost {
  readonly #worker: Worker;
  readonly #order: DeltaOrder;
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #ended: EverturnError | undefined;
  readonly #opened: Promise<void>;
  readonly #exited: Promise<void>;

  /** Starts the thread, and resolves when it has opened its files. */
  static async start(options: Omit<ThreadOptions, 'deltaOrder'>, order: DeltaOrder): Promise<ThreadHost> {
    // From source Node strips the types itself, under jest too; the built package has JavaScript.
    const file = import.meta.url.endsWith('.ts')
      ? new URL('./thread.ts', import.meta.url)
      : new URL('./thread.js', import.meta.url);
    const worker = new Worker(file, {
      workerData: { ...options, deltaOrder: order.memory } satisfies ThreadOptions,
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    const host = new ThreadHost(worker, options.role, order);
    await host.#opened;
    return host;
  }

  private constructor(worker: Worker, role: string, order: DeltaOrder) {
    this.#worker = worker;
    this.#order = order;
    const opened = Promise.withResolvers<void>();
    this.#opened = opened.promise;
    this.#exited = new Promise((resolve) => worker.once('exit', () => resolve()));
    worker.on('message', (answer: Answer) => {
      if ('ready' in answer) {
        worker.unref();
        opened.resolve();
      } else if ('failed' in answer) {
        opened.reject(decodeError(answer.failed));
      } else {
        this.#settle(answer);
      }
    });
    const end = (reason: string): void => {
      this.#ended ??= new EverturnError(
        'store_unavailable',
        `The store's ${role} thread ${reason}. Open the store again.`,
        { retryable: true },
      );
      opened.reject(this.#ended);
      for (const { reject } of this.#waiting.values()) reject(this.#ended);
      this.#waiting.clear();
    };
    worker.on('error', (error: Error) => end(`failed: ${error.message}`));
    worker.on('exit', () => end('ended'));
  }

  /** @param part `deltas`: a write of deltas. `behind`: not readable before the deltas that were sent until now. */
  call(operation: string, args: readonly unknown[], part?: 'deltas' | 'behind'): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const id = this.#calls;
      const after = part === 'behind' ? { after: this.#order.sent } : {};
      this.#post({ id, operation, args: encodeArgs(args), ...after });
      if (part === 'deltas') this.#order.noteSent();
      this.#calls += 1;
      if (this.#waiting.size === 0) this.#worker.ref();
      this.#waiting.set(id, { resolve, reject });
    });
  }

  /** Lets the calls that are waiting finish, closes the files and ends the thread. */
  async close(): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = new EverturnError('store_unavailable', 'The store is closed.');
      this.#worker.ref();
      this.#post({ close: true });
    }
    await this.#exited;
  }

  /** Ends the thread at once, as a crash would. */
  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(call: Call): void {
    this.#worker.postMessage(call);
  }

  #settle(answer: Extract<Answer, { id: number }>): void {
    const waiting = this.#waiting.get(answer.id);
    if (waiting === undefined) return;
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0 && this.#ended === undefined) this.#worker.unref();
    if ('error' in answer) waiting.reject(decodeError(answer.error));
    else waiting.resolve(decodeValue(answer.value));
  }
}

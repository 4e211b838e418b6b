import { Worker } from 'node:worker_threads';
import { EverturnError } from '../../common/errors.ts';
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
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #ended: EverturnError | undefined;
  readonly #opened: Promise<void>;
  readonly #exited: Promise<void>;

  /** Starts the thread, and resolves when it has opened its files. */
  static async start(options: ThreadOptions): Promise<ThreadHost> {
    // From source Node strips the types itself, under jest too; the built package has JavaScript.
    const file = import.meta.url.endsWith('.ts')
      ? new URL('./thread.ts', import.meta.url)
      : new URL('./thread.js', import.meta.url);
    const worker = new Worker(file, {
      workerData: options,
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    const host = new ThreadHost(worker, options.role);
    await host.#opened;
    return host;
  }

  private constructor(worker: Worker, role: string) {
    this.#worker = worker;
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

  call(operation: string, args: readonly unknown[]): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      const id = this.#calls;
      this.#post({ id, operation, args: encodeArgs(args) });
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

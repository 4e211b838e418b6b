import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const workerFile = fileURLToPath(new URL('../worker.ts', import.meta.url));
const stopTimeoutMs = 15_000;

/** A worker in a process of its own. It ends when this process ends, even by `kill -9`: its channel closes then. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #logFile: string;
  readonly #exited: Promise<unknown>;

  private constructor(child: ChildProcess, logFile: string) {
    this.#child = child;
    this.#logFile = logFile;
    this.#exited = Promise.race([once(child, 'exit'), once(child, 'error')]);
    this.#exited.catch(() => undefined);
  }

  /** @param logFile what the worker prints to its standard error */
  static start(env: Record<string, string>, logFile: string): WorkerProcess {
    const log = openSync(logFile, 'a');
    try {
      const child = spawn(process.execPath, [...process.execArgv, workerFile], {
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', log, 'ipc'],
      });
      return new WorkerProcess(child, logFile);
    } finally {
      closeSync(log);
    }
  }

  /** The line that the worker prints when it is ready. @throws Error with the end of its log when it stops before */
  async ready(): Promise<string> {
    const { stdout } = this.#child;
    if (stdout === null) throw new Error('The worker has no output.');
    const { promise, resolve } = Promise.withResolvers<string>();
    createInterface({ input: stdout }).on('line', resolve);
    await Promise.race([promise, this.#exited]);
    if (this.#hasExited()) throw new Error(`The worker stopped before it was ready. ${this.#lastWords()}`);
    return promise;
  }

  /** Ends it as a power cut would, and returns when it is gone. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Lets it finish what it can; by force after 15 s. */
  async stop(): Promise<void> {
    if (this.#hasExited()) return;
    this.#child.kill('SIGTERM');
    const force = setTimeout(() => this.#child.kill('SIGKILL'), stopTimeoutMs);
    await this.#exited;
    clearTimeout(force);
  }

  #hasExited(): boolean {
    return this.#child.pid === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #lastWords(): string {
    return readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
  }
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface FaultWorkerConfig {
  address: string;
  /** Path of the store. */
  store: string;
  taskQueue: string;
  /** Path of the workflow bundle. */
  bundle: string;
  /** Folder of the evidence; each session has a folder of its own in it. */
  folder: string;
  busyTimeoutMs?: number;
  /** Milliseconds that the process's clock is ahead. */
  clockMs?: number;
}

const main = fileURLToPath(new URL('./worker-main.ts', import.meta.url));
const clock = fileURLToPath(new URL('./clock.mjs', import.meta.url));

/** A worker of the matrix in a process of its own. It ends with this process at the latest. */
export class FaultWorker {
  private readonly child: ChildProcess;
  private readonly gone: Promise<unknown>;

  /** Returns when it polls for work. */
  static async start(config: FaultWorkerConfig): Promise<FaultWorker> {
    // Not the flags of jest: a plain Node, on the repository's sources.
    const { NODE_OPTIONS: _, ...env } = process.env;
    const flags = ['--conditions=everturn-source', '--disable-warning=ExperimentalWarning'];
    const child = spawn(process.execPath, [...flags, `--import=${clock}`, main], {
      env: {
        ...env,
        EVERTURN_FAULT_WORKER: JSON.stringify(config),
        EVERTURN_FAULT_CLOCK: String(config.clockMs ?? 0),
      },
      cwd: config.folder,
      stdio: ['ignore', process.env.EVERTURN_LOG ? 'inherit' : 'ignore', 'pipe', 'ipc'],
    });
    let errors = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-4000);
      if (process.env.EVERTURN_LOG) process.stderr.write(text);
    });
    const worker = new FaultWorker(child);
    const first = await Promise.race([once(child, 'message'), worker.gone]);
    if (first === 'gone') throw new Error(`The worker process ended at its start:\n${errors}`);
    return worker;
  }

  private constructor(child: ChildProcess) {
    this.child = child;
    const onExit = () => child.kill('SIGKILL');
    process.once('exit', onExit);
    child.once('exit', () => process.removeListener('exit', onExit));
    this.gone = once(child, 'exit').then(() => 'gone' as const);
  }

  /** Ends it as a power cut would, and returns when it is gone. */
  async kill9(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGKILL');
    await this.gone;
  }

  /** Freezes it where it is, as a machine that sleeps. What the server hands to its polls would be lost: they end before. */
  async freeze(): Promise<void> {
    const quiet = once(this.child, 'message');
    this.child.kill('SIGTERM');
    // One that has nothing to do any more ends by itself.
    await Promise.race([quiet, this.gone]);
    this.child.kill('SIGSTOP');
  }

  /** Wakes it up, and returns when it has gone through what it was doing and ended. */
  async wake(): Promise<void> {
    this.child.kill('SIGCONT');
    await this.gone;
  }
}

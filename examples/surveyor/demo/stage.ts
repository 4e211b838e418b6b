import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDevServer } from '../../../src/cli/dev-server.ts';
import { WorkerProcess } from './worker-process.ts';

/** What the demo starts and makes, so that all of it can be ended and removed, whatever happens. */
export class Stage {
  /** Everything that is written: the server's and the store's files, the report, logs. */
  readonly folder = mkdtempSync(join(tmpdir(), 'everturn-demo-'));
  readonly output = join(this.folder, 'report');
  readonly store = join(this.folder, 'everturn.db');
  /** Task queue and session: of this demo alone, also on a server that others use. */
  readonly name = `surveyor-demo-${randomUUID()}`;
  /** TEMPORAL_ADDRESS, or that of the server that `startServer` started. */
  address = process.env.TEMPORAL_ADDRESS ?? '';
  readonly #workspace: string;
  readonly #endings: (() => Promise<void>)[] = [];
  #workers = 0;

  constructor(workspace: string) {
    this.#workspace = workspace;
    mkdirSync(this.output);
  }

  /** What is registered is ended by `end`, the last first. */
  onEnd(ending: () => Promise<void>): void {
    this.#endings.push(ending);
  }

  /** Returns a line about the server. */
  async startServer(): Promise<string> {
    if (this.address !== '') return `The Temporal server is at ${this.address} (TEMPORAL_ADDRESS).`;
    const server = await startDevServer({ dbFile: join(this.folder, 'temporal.db') });
    this.onEnd(() => server.stop());
    this.address = server.address;
    return `A Temporal server runs at ${server.address}, process ${server.pid}.`;
  }

  startWorker(): WorkerProcess {
    this.#workers += 1;
    const settings = {
      SURVEYOR_WORKSPACE: this.#workspace,
      SURVEYOR_OUTPUT: this.output,
      EVERTURN_STORE: this.store,
      EVERTURN_TASK_QUEUE: this.name,
      TEMPORAL_ADDRESS: this.address,
    };
    const worker = WorkerProcess.start(settings, join(this.folder, `worker-${this.#workers}.log`));
    this.onEnd(() => worker.stop());
    return worker;
  }

  /** Ends and removes everything, even if a part of it fails; then tells the first failure. */
  async end(): Promise<void> {
    const failures: unknown[] = [];
    for (const ending of this.#endings.splice(0).reverse()) await ending().catch((error) => failures.push(error));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
    if (failures.length > 0) throw failures[0];
  }
}

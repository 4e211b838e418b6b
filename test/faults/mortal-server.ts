import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DevServer } from '../../src/cli/dev-server.ts';
import { startTemporalServer } from '../support/temporal-server.ts';

/** A Temporal server on a file of its own, which is killed and comes back at the same address. */
export class MortalServer {
  readonly address: string;
  private readonly folder: string;
  private current: DevServer;

  static async start(): Promise<MortalServer> {
    const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
    return new MortalServer(folder, await startTemporalServer({ dbFile: join(folder, 'temporal.db') }));
  }

  private constructor(folder: string, server: DevServer) {
    this.folder = folder;
    this.address = server.address;
    this.current = server;
  }

  kill(): Promise<void> {
    return this.current.kill();
  }

  async restart(): Promise<void> {
    const port = Number(this.address.split(':')[1]);
    this.current = await startTemporalServer({ dbFile: join(this.folder, 'temporal.db'), port });
  }

  async end(): Promise<void> {
    await this.current.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}

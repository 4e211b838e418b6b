import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { Evidence } from '../support/evidence.ts';
import type { Blow } from './cases.ts';
import type { MortalServer } from './mortal-server.ts';
import { fullFile } from './points.ts';
import type { FaultStage } from './stage.ts';
import type { FaultWorker } from './worker-process.ts';

const day = 24 * 3_600_000;
/** Longer than a worker of this blow waits for the lock, and longer than a heartbeat may be late. */
const awayMs = 5_000;

export interface Place {
  stage: FaultStage;
  worker: FaultWorker;
  server: MortalServer | undefined;
  /** Called when the worker cannot do anything. */
  meanwhile(): Promise<void>;
}

/** Lets the blow fall. @returns for frozen workers, what wakes them up */
export async function strike(
  blow: Blow,
  { stage, worker, server, meanwhile }: Place,
): Promise<(() => Promise<void>) | undefined> {
  switch (blow) {
    case 'kill':
    case 'ahead':
    case 'behind':
      await worker.kill9();
      await meanwhile();
      await stage.startWorker({ clockMs: { kill: 0, ahead: day, behind: -day }[blow] });
      return undefined;
    case 'freeze':
      await worker.freeze();
      await meanwhile();
      await stage.startWorker();
      return () => worker.wake();
    case 'server':
      await server?.kill();
      await meanwhile();
      await server?.restart();
      return undefined;
    case 'locked':
      await whileLocked(join(stage.storePath, 'everturn.db'), meanwhile);
      return undefined;
    case 'full':
      await whileFull(new Evidence(stage.folder), meanwhile);
      return undefined;
  }
}

async function whileFull(root: Evidence, meanwhile: () => Promise<void>): Promise<void> {
  root.put(fullFile);
  await meanwhile();
  await delay(awayMs);
  root.remove(fullFile);
}

/** Holds the write lock of the log, as a backup or a person with a shell would. */
async function whileLocked(file: string, meanwhile: () => Promise<void>): Promise<void> {
  const database = new DatabaseSync(file);
  try {
    database.exec('pragma busy_timeout = 10000; begin immediate');
    await meanwhile();
    await delay(awayMs);
    database.exec('rollback');
  } finally {
    database.close();
  }
}

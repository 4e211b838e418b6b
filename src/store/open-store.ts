import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EverturnError } from '../common/errors.ts';
import { DeltaOrder } from './sqlite/delta-order.ts';
import { storeOver } from './sqlite/store.ts';
import { ThreadHost } from './sqlite/thread-host.ts';
import type { Store } from './types.ts';

export interface OpenStoreOptions {
  /**
   * A directory, which gets `everturn.db` and `live.db`, or a file that ends in `.db`, `.sqlite` or `.sqlite3` (or is
   * there already), which gets its live deltas beside it. Created when it is missing.
   */
  path: string;
  /**
   * Limit of the log's file in pages of 4 KiB; beyond it writes fail with `store_full` until there is room. Default: none
   * but the disk. It holds for this opening, not for other processes.
   */
  maxPages?: number;
  /** Milliseconds to wait for the lock that another process holds before `store_unavailable`. Default: 10,000. */
  busyTimeoutMs?: number;
}

/**
 * Opens the embedded store. Several processes may have the same one open: writers take turns, readers wait for nobody.
 * @throws EverturnError `store_unavailable` when the path cannot be used, `store` when it holds something else or a
 * newer version
 */
export async function openStore(options: OpenStoreOptions): Promise<Store> {
  const { log, live } = await openThreads(options);
  return storeOver(log, live);
}

/** The store's two threads: one writes the log, the other does the live deltas and all reads. */
export async function openThreads(options: OpenStoreOptions): Promise<{ log: ThreadHost; live: ThreadHost }> {
  const { path, maxPages, busyTimeoutMs = 10_000 } = options;
  if (path === '') throw new EverturnError('invalid_argument', 'The path of the store is empty.');
  const scheme = /^(\w+):\/\//.exec(path)?.[1];
  if (scheme !== undefined) {
    // As a path it would become a folder that nobody looks for.
    throw new EverturnError(
      'invalid_config',
      `A store on ${scheme} is not supported yet. Give a path: the store is a folder or a file.`,
    );
  }
  const order = new DeltaOrder();
  const shared = { ...storeFiles(path), busyTimeoutMs, maxPages };
  const [log, live] = await Promise.allSettled([
    ThreadHost.start({ ...shared, role: 'log' }, order),
    ThreadHost.start({ ...shared, role: 'live' }, order),
  ]);
  if (log.status === 'fulfilled' && live.status === 'fulfilled') return { log: log.value, live: live.value };
  for (const thread of [log, live]) if (thread.status === 'fulfilled') await thread.value.close();
  throw log.status === 'rejected' ? log.reason : (live as PromiseRejectedResult).reason;
}

/** The two files of a store. */
function storeFiles(path: string): { logFile: string; liveFile: string } {
  const full = resolve(path);
  const isFile = existsSync(full) ? !statSync(full).isDirectory() : /\.(db|sqlite3?)$/.test(full);
  if (!isFile) return { logFile: join(full, 'everturn.db'), liveFile: join(full, 'live.db') };
  const extension = /\.[^./\\]+$/.exec(full)?.[0] ?? '';
  return { logFile: full, liveFile: `${full.slice(0, full.length - extension.length)}-live${extension || '.db'}` };
}

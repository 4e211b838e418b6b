import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** Resident memory of a process in bytes; undefined when it is gone. */
async function residentBytes(pid: number): Promise<number | undefined> {
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => undefined);
    const line = status?.split('\n').find((each) => each.startsWith('VmRSS:'));
    const kilobytes = line ?? (await promisify(execFile)('ps', ['-o', 'rss=', '-p', String(pid)])).stdout;
    return Number(kilobytes.replaceAll(/\D/g, '')) * 1_024;
  } catch {
    return undefined;
  }
}

/** Looks once a second until it is told to stop, and then gives the most that each process had, in MiB. */
export function watchMemory(pids: readonly number[]): () => number[] {
  const peaks = pids.map(() => 0);
  const look = async () => {
    for (const [index, pid] of pids.entries())
      peaks[index] = Math.max(peaks[index] ?? 0, (await residentBytes(pid)) ?? 0);
  };
  void look();
  const timer = setInterval(() => void look(), 1_000);
  return () => {
    clearInterval(timer);
    return peaks.map((bytes) => Math.round(bytes / 1_024 ** 2));
  };
}

/** Bytes of all files of a folder, whose names begin so. */
export async function diskBytes(folder: string, prefix = ''): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && entry.name.startsWith(prefix)) bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return bytes;
}

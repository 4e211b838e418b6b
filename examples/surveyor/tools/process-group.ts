import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';

export interface GroupOptions {
  cwd: string;
  env: Record<string, string>;
  signal: AbortSignal;
  timeoutMs: number;
  /** Standard output and standard error, in the order in which they came. */
  onOutput(chunk: Buffer): void;
}

export type GroupEnd =
  | { kind: 'exit'; code: number }
  | { kind: 'killed'; signal: NodeJS.Signals }
  | { kind: 'timeout' }
  | { kind: 'aborted' };

const shell = existsSync('/bin/bash') ? '/bin/bash' : 'sh';

/**
 * Runs a shell command in a process group of its own and returns when it is over. Nothing of the group outlives the
 * call: not a background process, not after a timeout or an abort, and not when this process is killed with `kill -9`.
 * A program that leaves the group on purpose (setsid) does.
 */
export async function runInGroup(command: string, options: GroupOptions): Promise<GroupEnd> {
  const { signal, timeoutMs } = options;
  if (signal.aborted) return { kind: 'aborted' };
  const child = spawn(shell, ['-c', command], {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { promise: exited, resolve, reject } = Promise.withResolvers<GroupEnd>();
  const closed = new Promise((done) => child.once('close', done));
  child.stdout.on('data', options.onOutput);
  child.stderr.on('data', options.onOutput);
  child.once('error', reject);
  child.once('exit', (code, killer) => {
    resolve(killer === null ? { kind: 'exit', code: code ?? 0 } : { kind: 'killed', signal: killer });
  });
  const { pid } = child;
  if (pid === undefined) return exited;

  const release = killWithThisProcess(pid);
  const timer = setTimeout(resolve, timeoutMs, { kind: 'timeout' });
  const onAbort = () => resolve({ kind: 'aborted' });
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await exited;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    killGroup(pid);
    release();
    // A process that left the group may hold the pipes open for ever; what the group wrote is in them by now.
    const patience = setTimeout(() => child.stdout.destroy() && child.stderr.destroy(), 500);
    await closed;
    clearTimeout(patience);
  }
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Everybody has gone.
  }
}

/** A tiny shell waits on a pipe that only this process holds open, so it sees the end of this process, however it comes. */
function killWithThisProcess(pid: number): () => void {
  const guard = spawn('sh', ['-c', 'cat >/dev/null; kill -9 -"$0" 2>/dev/null', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  return () => guard.kill('SIGKILL');
}

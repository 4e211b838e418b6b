import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Replies of the model in one session, as a JSON list in its folder. Read at each request, so a test may change them. */
export const repliesFile = 'replies.json';
/** The model's request log, of all sessions. */
export const requestsFile = 'requests.jsonl';

/** Task queue of the tool `effect_elsewhere`. */
export function elsewhereQueue(taskQueue: string): string {
  return `${taskQueue}-elsewhere`;
}

/**
 * While this file is there, an effect of that name ("RUN/t0/model"; "RUN/end" for what ends a run) holds before or after
 * the commit that carries its result: the moment when everything is done and nothing is told. `<file>.waiting` says that one is there. With a pid in
 * the file, only that process holds.
 */
export function holdCommitFile(place: 'before' | 'after', effect: string): string {
  return `hold-${place}-${effect.replaceAll('/', '_')}`;
}

/** While this file is there, second and later attempts of the session's effects do not begin. */
export const holdRetriesFile = 'hold-retries';

export interface WorkerProcessConfig {
  address: string;
  /** Path of the store. */
  store: string;
  taskQueue: string;
  /** Path of the workflow bundle. */
  bundle: string;
  /** Folder of the evidence; each session has a folder of its own in it. */
  folder: string;
  /** True: works for the tool `effect_elsewhere` alone. */
  elsewhere: boolean;
}

/** A worker in a process of its own. */
export interface WorkerProcess {
  readonly pid: number;
  alive(): boolean;
  /** Ends it as a power cut would, and returns when it is gone. */
  kill9(): Promise<void>;
  /** Ends it in good order, and returns when it is gone. */
  stop(): Promise<void>;
  /**
   * Freezes it in the middle of what it does, as a machine that sleeps. It ends its polls before, in good order: what the
   * server hands to a poll of a frozen process is lost for up to 10 s each, which would only make tests slow.
   */
  freeze(): Promise<void>;
  /** Wakes it up; it finishes what it was doing, and ends. */
  wake(): Promise<void>;
}

const main = fileURLToPath(new URL('./worker-main.ts', import.meta.url));
const stopTimeoutMs = 15_000;

/** Starts a worker process and returns when it polls for work. It ends with this process at the latest. */
export async function startWorkerProcess(config: WorkerProcessConfig): Promise<WorkerProcess> {
  // Not the flags of jest: a plain Node, on the repository's sources.
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(
    process.execPath,
    ['--conditions=everturn-source', '--disable-warning=ExperimentalWarning', main],
    {
      env: { ...env, EVERTURN_TEST_WORKER: JSON.stringify(config) },
      cwd: config.folder,
      stdio: ['ignore', process.env.EVERTURN_LOG ? 'inherit' : 'ignore', 'pipe', 'ipc'],
    },
  );
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-4000);
    if (process.env.EVERTURN_LOG) process.stderr.write(text);
  });
  const onExit = () => child.kill('SIGKILL');
  process.once('exit', onExit);
  child.once('exit', () => process.removeListener('exit', onExit));
  const gone = once(child, 'exit').then(() => 'gone' as const);
  const first = await Promise.race([once(child, 'message'), gone]);
  if (first === 'gone') throw new Error(`The worker process ended at its start:\n${errors}`);
  return handleOf(child, gone);
}

function handleOf(child: ChildProcess, gone: Promise<unknown>): WorkerProcess {
  const alive = () => child.exitCode === null && child.signalCode === null;
  const end = async (signal: NodeJS.Signals) => {
    if (!alive()) return;
    child.kill(signal);
    const giveUp = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    await gone;
    clearTimeout(giveUp);
  };
  return {
    pid: child.pid ?? -1,
    alive,
    kill9: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    async freeze() {
      const quiet = once(child, 'message');
      child.kill('SIGTERM');
      await quiet;
      child.kill('SIGSTOP');
    },
    async wake() {
      child.kill('SIGCONT');
      await end('SIGTERM');
    },
  };
}

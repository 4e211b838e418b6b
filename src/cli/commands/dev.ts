import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { EverturnError, errorText } from '../../common/errors.ts';
import { defaultAddress } from '../../temporal/address.ts';
import type { EverturnWorker } from '../../worker/index.ts';
import { Output } from '../output.ts';
import { parsePort, type SessionFlags, settingsOf, storePath, withStoreFlags } from '../settings.ts';
import { endNow, onEndSignals } from '../signals.ts';
import { type AgentFlags, prepareWorker, tellEnded, tellEnding, tellReady, withAgentFlags } from './worker.ts';

interface DevFlags extends AgentFlags, SessionFlags {
  port?: number;
  db?: string;
  ui?: boolean;
}

interface Server {
  address: string;
  stop(): Promise<void>;
}

const defaultPort = Number(defaultAddress.split(':')[1]);

export function addDevCommand(program: Command): void {
  withAgentFlags(
    withStoreFlags(program.command('dev').description('start a Temporal server and a worker, for one machine')),
  )
    .option('--task-queue <name>', 'task queue of the worker (EVERTURN_TASK_QUEUE, else "everturn")')
    .option(
      '--port <number>',
      `port of the Temporal server (default: ${defaultPort}); its UI has the one 1,000 above`,
      parsePort,
    )
    .option('--db <file>', "the server's file (default: temporal.db beside the store)")
    .option('--ui', "serve Temporal's web UI")
    .action(dev);
}

/** Server and worker end together, in this order: worker, server. Nothing outlives this process, however it ends. */
async function dev(flags: DevFlags): Promise<void> {
  const out = new Output(flags.json);
  const settings = settingsOf(flags);
  let worker: EverturnWorker | undefined;
  let ending = false;
  const release = onEndSignals((before, signal) => {
    if (before > 0) endNow(signal);
    tellEnding(out);
    ending = true;
    worker?.shutdown();
  });
  const start = await prepareWorker(flags);
  const server = await serverFor(flags, out);
  try {
    if (ending) return;
    const here = { ...settings, address: server.address };
    worker = await start(here);
    const running = worker.run();
    if (ending) worker.shutdown();
    tellReady(out, start.file, here);
    tellHowToGoOn(out, start.file.agents[0]?.name ?? '', server.address);
    await running;
  } finally {
    await server.stop();
    release();
    tellEnded(out);
  }
}

/** A server that TEMPORAL_ADDRESS names is used, unless a flag asks for one of our own. */
async function serverFor(flags: DevFlags, out: Output): Promise<Server> {
  const named = process.env.TEMPORAL_ADDRESS;
  if (named && flags.port === undefined && flags.db === undefined && flags.ui === undefined) return running(named, out);
  const dbFile = flags.db ?? join(dirname(storePath(flags)), 'temporal.db');
  const port = flags.port ?? defaultPort;
  out.line(`starting a Temporal server on 127.0.0.1:${port}, its file is ${dbFile}`);
  mkdirSync(dirname(dbFile), { recursive: true });
  const { startDevServer } = await import('../dev-server.ts');
  const server = await startDevServer({ port, dbFile, ui: flags.ui ?? false });
  if (server.uiUrl !== undefined) out.line(`its UI is at ${server.uiUrl}`);
  out.object({ type: 'server', address: server.address, pid: server.pid, dbFile, uiUrl: server.uiUrl ?? null });
  return server;
}

async function running(address: string, out: Output): Promise<Server> {
  out.line(`using the Temporal server at ${address} (TEMPORAL_ADDRESS)`);
  const { untilTemporalAnswers } = await import('../dev-server.ts');
  await untilTemporalAnswers(address, 0).catch((error: unknown) => {
    throw new EverturnError(
      'temporal_unavailable',
      `No Temporal server answers at ${address} (${errorText(error)}). Start it, or unset TEMPORAL_ADDRESS and "everturn dev" starts one.`,
      { retryable: true, cause: error, details: { address } },
    );
  });
  out.object({ type: 'server', address, pid: null, dbFile: null, uiUrl: null });
  return { address, stop: async () => undefined };
}

function tellHowToGoOn(out: Output, agent: string, address: string): void {
  const where = address === defaultAddress || address === process.env.TEMPORAL_ADDRESS ? '' : ` --address ${address}`;
  out.line(`try, in another terminal: everturn run "hello" --agent ${agent}${where}`);
  out.line('Ctrl-C ends server and worker');
}

import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Provider } from '@earendil-works/pi-ai';
import type { Agent } from 'everturn';
import { AgentClient } from 'everturn/client';
import { createWorker } from 'everturn/worker';
import { type DevServer, startDevServer } from '../src/cli/dev-server.ts';
import { instantModel } from './model.ts';

/** What a benchmark prints: one JSON line with --json, else tables. */
export type Figures = Record<string, number | readonly Record<string, number | string>[]>;

/** Where a benchmark works: a Temporal server and a folder for store and files. */
export interface Place {
  server: DevServer;
  folder: string;
}

export interface ServerOptions {
  /** The server keeps its data in this file of the folder. Default: in memory. */
  dbFile?: string;
  /** Called when the server has ended and the folder is still there. */
  atEnd?: (folder: string) => Promise<void>;
}

/** A Temporal server and a temporary folder, both gone at the end, also after Ctrl-C. */
export async function withServer<T>(options: ServerOptions, work: (place: Place) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'everturn-bench-'));
  const onExit = () => rmSync(folder, { recursive: true, force: true });
  process.once('exit', onExit);
  try {
    const server = await startDevServer(options.dbFile === undefined ? {} : { dbFile: join(folder, options.dbFile) });
    try {
      const result = await work({ server, folder });
      await server.stop();
      await options.atEnd?.(folder);
      return result;
    } finally {
      await server.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
    process.removeListener('exit', onExit);
  }
}

/** A store and a task queue of their own on the place's server. */
export interface Queue {
  address: string;
  store: string;
  taskQueue: string;
}

let queues = 0;

export function newQueue({ server, folder }: Place): Queue {
  queues += 1;
  return {
    address: server.address,
    store: join(folder, `store-${queues}`),
    taskQueue: `bench-${process.pid}-${queues}`,
  };
}

/** A client of the queue, closed at the end. */
export async function withClient<T>(queue: Queue, work: (client: AgentClient) => Promise<T>): Promise<T> {
  const client = await AgentClient.connect(queue);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** One worker with the product's own settings, and one client, in this process. */
export async function withWorker<T>(
  queue: Queue,
  options: { agents: readonly Agent[]; providers?: readonly Provider[]; workflowsPath?: string },
  work: (client: AgentClient) => Promise<T>,
): Promise<T> {
  const worker = await createWorker({ providers: [instantModel()], ...queue, ...options });
  const running = worker.run();
  try {
    return await withClient(queue, work);
  } finally {
    worker.shutdown();
    await running;
  }
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function round(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}

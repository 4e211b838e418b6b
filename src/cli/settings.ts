import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { EverturnError } from '../common/errors.ts';
import { defaultTaskQueue, idSchema } from '../common/signals.ts';
import { defaultAddress, defaultNamespace } from '../temporal/address.ts';
import { invalidArgument } from './failure.ts';

// Every setting: the flag, else the environment, else the default. An empty variable counts as one that is not set.

const defaultStore = './.everturn/store';

export interface StoreFlags {
  store?: string;
  json?: boolean;
}

export interface SessionFlags extends StoreFlags {
  taskQueue?: string;
  address?: string;
  namespace?: string;
  wait?: number;
}

export interface Settings {
  store: string;
  taskQueue: string;
  address: string;
  namespace: string;
}

export function withStoreFlags(command: Command): Command {
  return command
    .option('--store <path>', `the store of the sessions (EVERTURN_STORE, else ${defaultStore})`)
    .option('--json', 'write JSON, one object a line');
}

export function withTemporalFlags(command: Command): Command {
  return withStoreFlags(command)
    .option('--task-queue <name>', `task queue of the workers (EVERTURN_TASK_QUEUE, else "${defaultTaskQueue}")`)
    .option('--address <host:port>', `the Temporal server (TEMPORAL_ADDRESS, else ${defaultAddress})`)
    .option('--namespace <name>', `Temporal namespace (TEMPORAL_NAMESPACE, else "${defaultNamespace}")`);
}

/** For commands that wait for a worker's answer. */
export function withWaitFlag(command: Command): Command {
  return command.option('--wait <seconds>', 'how long a worker may take to answer', parseSeconds, 30);
}

export function storePath(flags: StoreFlags): string {
  return flags.store || process.env.EVERTURN_STORE || defaultStore;
}

export function settingsOf(flags: SessionFlags): Settings {
  const address = flags.address || process.env.TEMPORAL_ADDRESS || defaultAddress;
  if (!/^\S+:\d{1,5}$/.test(address))
    throw invalidArgument(`"${address}" is no address of a Temporal server: write host:port.`);
  return {
    store: storePath(flags),
    taskQueue: flags.taskQueue || process.env.EVERTURN_TASK_QUEUE || defaultTaskQueue,
    address,
    namespace: flags.namespace || process.env.TEMPORAL_NAMESPACE || defaultNamespace,
  };
}

/** The store as it may be shown: an address without its password. */
export function shownStore(path: string): string {
  return path.replace(/^(\w+:\/\/[^/@:]*):[^/@]*@/, '$1:***@');
}

/** A reader must not make an empty store where there is none: it would look like one without sessions. */
export function requireStore(path: string): string {
  if (!path.includes('://') && !existsSync(resolve(path))) {
    throw new EverturnError(
      'store_unavailable',
      `There is no store at ${path}. Start "everturn dev" or "everturn worker" in this folder, or name the workers' store with --store or EVERTURN_STORE.`,
      { details: { store: path } },
    );
  }
  return path;
}

/** An argument parser for session and run ids. */
export function parseId(what: string): (value: string) => string {
  return (value) => {
    if (idSchema.safeParse(value).success) return value;
    throw invalidArgument(
      `"${value}" is no ${what} id: 1 to 200 letters, digits or . _ : @ -, beginning with a letter or digit.`,
    );
  };
}

export function parseCount(value: string): number {
  if (!/^\d{1,15}$/.test(value)) throw invalidArgument(`"${value}" is no whole number from 0 on.`);
  return Number(value);
}

export function parsePort(value: string): number {
  const port = parseCount(value);
  if (port < 1 || port > 65_535) throw invalidArgument(`"${value}" is no port: 1 to 65535.`);
  return port;
}

function parseSeconds(value: string): number {
  const seconds = Number(value);
  if (!(seconds > 0 && seconds <= 86_400))
    throw invalidArgument(`"${value}" is no number of seconds from above 0 to 86400.`);
  return seconds;
}

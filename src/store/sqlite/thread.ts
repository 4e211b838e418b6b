// Main of the store's threads. Nothing imports it: thread-host.ts starts it by its address.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { EverturnError } from '../../common/errors.ts';
import { migrateLive, migrateLog } from '../migrate.ts';
import { liveReads, liveWrites, logReads, logWrites } from '../operations/index.ts';
import type { LiveTables, Tables } from '../schema.ts';
import type { Store } from '../types.ts';
import { Connection } from './connection.ts';
import { DeltaOrder } from './delta-order.ts';
import { toStoreError } from './errors.ts';
import { type Job, runGroup } from './group.ts';
import { type Answer, type Call, decodeArgs, encodeError, encodeValue, type ThreadOptions } from './protocol.ts';

/** More operations than this do not share a commit, so that the first of them need not wait for the last too long. */
const maxGroup = 128;

// Operations are looked up by the name that the typed main side sent; their arguments are the ones it was typed with.
type Operation = (db: unknown, ...args: unknown[]) => Promise<unknown>;
type Table = Record<string, Operation | undefined>;

interface Pending {
  id: number;
  args: unknown[];
  operation: string;
  after?: number;
}

interface Room {
  /** Takes out of the queue what is to run next. */
  take(queue: Pending[]): Pending[];
  run(calls: Pending[]): Promise<void>;
  close(): void;
}

async function openLogRoom(options: ThreadOptions, answer: (message: Answer) => void): Promise<Room> {
  const connection = await Connection.open<Tables>({
    file: options.logFile,
    synchronous: 'FULL',
    busyTimeoutMs: options.busyTimeoutMs,
    maxPages: options.maxPages,
  });
  await migrate(connection, migrateLog);
  const table = logWrites as unknown as Table;
  const order = new DeltaOrder(options.deltaOrder);
  const jobOf = (call: Pending): Job<Tables> => ({
    ...toJob<Tables>(table, call, answer),
    passing: isPassing(call),
  });
  return {
    take: (queue) => queue.splice(0, maxGroup),
    run: (calls) => {
      const behind = calls.flatMap(({ after }) => (after === undefined ? [] : [after]));
      return runGroup(connection, calls.map(jobOf), () => order.wait(behind));
    },
    close: () => connection.close(),
  };
}

/**
 * The beginning of an effect is written again by its retry, from what Temporal has: a crash of this process cannot undo
 * it, and the power's end may. Not so with a claim that says that a tool must not be entered twice.
 */
function isPassing({ operation, args }: Pending): boolean {
  if (operation !== 'beginEffect') return false;
  const [, first] = args as Parameters<Store['beginEffect']>;
  return first?.claim === undefined || first.claim.replay === 'safe';
}

async function openLiveRoom(options: ThreadOptions, answer: (message: Answer) => void): Promise<Room> {
  const { busyTimeoutMs } = options;
  const live = await Connection.open<LiveTables>({ file: options.liveFile, synchronous: 'NORMAL', busyTimeoutMs });
  await migrate(live, migrateLive);
  // Opened at the first read: the log thread makes the file, at the same time as this thread starts.
  let log: Connection<Tables> | undefined;
  const openLog = async (): Promise<Connection<Tables>> => {
    log ??= await Connection.open<Tables>({
      file: options.logFile,
      synchronous: 'FULL',
      busyTimeoutMs,
      readOnly: true,
    });
    return log;
  };
  const order = new DeltaOrder(options.deltaOrder);
  const isDeltas = ({ operation }: Pending): boolean =>
    operation === ('appendDeltas' satisfies keyof typeof liveWrites);
  const jobOf = (call: Pending): Job<LiveTables> => toJob(liveWrites as unknown as Table, call, answer);
  return {
    // A commit may wait for deltas: they wait for one other call at most.
    take: (queue) => {
      const deltas = queue.filter(isDeltas);
      if (deltas.length === 0) return queue.splice(0, 1);
      queue.splice(0, queue.length, ...queue.filter((call) => !isDeltas(call)));
      return deltas;
    },
    run: async (calls) => {
      const [call] = calls;
      if (call === undefined) return;
      if (call.operation in liveWrites) {
        await runGroup(live, calls.map(jobOf));
        if (isDeltas(call)) order.noteDone(calls.length);
      } else if (call.operation in liveReads) await read(live, liveReads as unknown as Table, call, answer);
      else await read(await openLog(), logReads as unknown as Table, call, answer);
    },
    close: () => {
      live.close();
      log?.close();
    },
  };
}

/** Runs a read in a transaction of its own, so that all its statements see the same moment. */
async function read<Schema>(
  connection: Connection<Schema>,
  table: Table,
  call: Pending,
  answer: (message: Answer) => void,
): Promise<void> {
  const job = toJob<Schema>(table, call, answer);
  try {
    const value = await connection.retryWhileBusy(async () => {
      connection.rollback();
      connection.exec('begin');
      return job.run(connection.db);
    });
    job.resolve(value);
  } catch (error) {
    job.reject(toStoreError(error, connection.file));
  } finally {
    connection.rollback();
  }
}

async function migrate<Schema>(
  connection: Connection<Schema>,
  run: (db: Connection<Schema>['db']) => Promise<void>,
): Promise<void> {
  try {
    await connection.begin();
    await run(connection.db);
    connection.exec('commit');
  } catch (error) {
    connection.rollback();
    connection.close();
    throw toStoreError(error, connection.file);
  }
}

function toJob<Schema>(table: Table, call: Pending, answer: (message: Answer) => void): Job<Schema> {
  return {
    run: async (db) => {
      const operation = table[call.operation];
      if (operation === undefined) throw new EverturnError('internal', `No store operation ${call.operation}.`);
      return operation(db, ...call.args);
    },
    resolve: (value) => answer({ id: call.id, value: encodeValue(value) }),
    reject: (error) => answer({ id: call.id, error: encodeError(error) }),
  };
}

/** Collects calls while a group runs; the next group is everything that has come meanwhile. */
function serve(port: MessagePort, room: Room): void {
  const queue: Pending[] = [];
  let closing = false;
  let running = false;
  const drain = async (): Promise<void> => {
    if (running) return;
    running = true;
    while (queue.length > 0) {
      await room.run(room.take(queue));
      // Lets the port hand over what has arrived, or the next group would be one call.
      await new Promise((resolve) => setImmediate(resolve));
    }
    running = false;
    if (!closing) return;
    room.close();
    port.close();
  };
  port.on('message', (call: Call) => {
    if ('close' in call) closing = true;
    else queue.push({ ...call, args: decodeArgs(call.args) });
    setImmediate(drain);
  });
}

async function main(port: MessagePort, options: ThreadOptions): Promise<void> {
  const answer = (message: Answer): void => port.postMessage(message);
  try {
    const room = await (options.role === 'log' ? openLogRoom(options, answer) : openLiveRoom(options, answer));
    serve(port, room);
    answer({ ready: true });
  } catch (error) {
    answer({ failed: encodeError(toStoreError(error, options.role === 'log' ? options.logFile : options.liveFile)) });
    port.close();
  }
}

if (parentPort !== null) await main(parentPort, workerData as ThreadOptions);

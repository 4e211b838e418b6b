import { setTimeout as delay } from 'node:timers/promises';
import type { SessionEvent, StreamRecord } from '../common/events.ts';
import type { Store } from '../store/types.ts';
import { EventAssembler } from './event-assembler.ts';

export interface EventsOptions {
  /** Offset of the first record of the log to read. Default: 0, the beginning. */
  from?: number;
  /** False: end when the log has been read. True (default): go on with what comes, until the signal fires. */
  follow?: boolean;
  /** False: no live deltas. Default: true when following. */
  live?: boolean;
  signal?: AbortSignal;
}

const batch = 500;
// A reader looks often while things happen and seldom while they do not.
const fastMs = 15;
const slowMs = 150;
const slowAfterMs = 3_000;

/**
 * Events of a session in the order of the log, each offset once. Reading again from an offset gives the same events. Live
 * deltas come for what is being streamed now; those of messages that are complete are not repeated.
 */
export async function* readEvents(
  store: Store,
  sessionId: string,
  options: EventsOptions = {},
): AsyncGenerator<SessionEvent> {
  const { follow = true, live = follow, signal } = options;
  const first = options.from ?? 0;
  let offset = first;
  const assembler = await primed(store, sessionId, first);
  let seq = 0;
  let caughtUp = false;
  let lastNews = Date.now();
  while (!signal?.aborted) {
    const records = await store.readLog(sessionId, offset, batch);
    // Deltas are readable before the message that they become (see Store.appendDeltas), so reading them second misses none.
    const deltas = live && records.length < batch ? await store.readDeltas(sessionId, seq, batch) : [];
    offset = (records.at(-1)?.offset ?? offset - 1) + 1;
    seq = deltas.at(-1)?.seq ?? seq;
    const fresh = caughtUp ? deltas : await incomplete(store, sessionId, deltas);
    caughtUp ||= live && records.length < batch && deltas.length < batch;
    for (const event of assembler.push(records, fresh)) {
      if (signal?.aborted) return;
      // A save_point is told with the record after its turn_end, which the caller has behind it.
      if (event.offset === undefined || event.offset >= first) yield event;
    }
    if (records.length > 0 || deltas.length > 0) {
      lastNews = Date.now();
      if (records.length === batch || deltas.length === batch) continue;
    }
    if (!follow) return;
    const pause = Date.now() - lastNews > slowAfterMs ? slowMs : fastMs;
    await delay(pause, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

/** How much of the log before its first record a reader looks at, for messages that later events name. */
const lookBack = 1_000;

/** An assembler that has seen what stands before the first record: what turn_end and queue_update name may stand there. */
async function primed(store: Store, sessionId: string, from: number): Promise<EventAssembler> {
  const assembler = new EventAssembler();
  for (let offset = Math.max(0, from - lookBack); offset < from; ) {
    const records = await store.readLog(sessionId, offset, Math.min(batch, from - offset));
    if (records.length === 0) break;
    Array.from(assembler.push(records, []));
    offset += records.length;
  }
  return assembler;
}

/** Without the deltas of messages and tool results that are complete. */
async function incomplete(store: Store, sessionId: string, deltas: StreamRecord[]): Promise<StreamRecord[]> {
  if (deltas.length === 0) return deltas;
  const entries = await store.readEntries(sessionId, [...new Set(deltas.map((delta) => delta.entryId))]);
  const complete = new Set(entries.map((entry) => entry.id));
  return deltas.filter((delta) => !complete.has(delta.entryId));
}

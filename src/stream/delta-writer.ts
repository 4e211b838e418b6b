import type { StreamDelta } from '../common/events.ts';
import type { Delta, Store } from '../store/types.ts';

/** Deltas are written together this often: a reader sees them within one batch. */
const batchMs = 20;

/** One attempt of one entry: its deltas are numbered from 0, the first is a reset. */
export interface DeltaSource {
  push(delta: StreamDelta): void;
}

/**
 * Live deltas of all streams of this worker. They are a convenience for readers, the log is the truth: when they cannot
 * be written the run goes on, and readers get the whole message from the log.
 */
export class DeltaWriter {
  private readonly store: Pick<Store, 'appendDeltas'>;
  private readonly onLost: (count: number, error: unknown) => void;
  private buffer: Delta[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(store: Pick<Store, 'appendDeltas'>, onLost: (count: number, error: unknown) => void) {
    this.store = store;
    this.onLost = onLost;
  }

  open(place: { sessionId: string; runId: string; entryId: string; attempt: number }): DeltaSource {
    let n = 0;
    const add = (delta: StreamDelta) => {
      this.buffer.push({ ...place, n, delta });
      n += 1;
      this.timer ??= setTimeout(() => void this.flush(), batchMs);
    };
    // What sends nothing writes nothing: most tools have no updates.
    const push = (delta: StreamDelta) => {
      if (n === 0) add({ type: 'reset' });
      add(delta);
    };
    return { push };
  }

  /**
   * Sends what waits to the store. Called before a message is committed, which is then not readable before its deltas:
   * the store sees to that as far as it can, so nobody need wait. Resolves when everything that was sent is written or lost.
   */
  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const batch = this.buffer;
    this.buffer = [];
    if (batch.length > 0) {
      const written = this.store.appendDeltas(batch).catch((error: unknown) => this.onLost(batch.length, error));
      this.writing = this.writing.then(() => written);
    }
    return this.writing;
  }
}

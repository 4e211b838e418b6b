import type { RunKey, RunRow, Store } from '../store/types.ts';

// A waiter looks often at first and then less.
const pausesMs = [15, 50, 200] as const;
const [midAfterMs, slowAfterMs] = [500, 30_000];

interface Waiter {
  key: RunKey;
  /** When the wait began, in milliseconds since 1970: it decides how often is looked. */
  since: number;
  settle(end: { run: RunRow } | { error: unknown } | undefined): void;
}

/** Sees the ends of all runs that a client waits for with one query a look, and asks nothing while nobody waits. */
export class RunWatcher {
  private readonly store: Pick<Store, 'readEndedRuns'>;
  private readonly waiters = new Set<Waiter>();
  private timer: NodeJS.Timeout | undefined;
  private looking = false;

  constructor(store: Pick<Store, 'readEndedRuns'>) {
    this.store = store;
  }

  /**
   * @returns the run when it has ended, undefined when it has not within the time
   * @throws the signal's reason; what the store throws
   */
  ended(key: RunKey, options: { since: number; timeoutMs: number; signal?: AbortSignal }): Promise<RunRow | undefined> {
    const { since, timeoutMs, signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => waiter.settle({ error: signal?.reason });
      const timeout = setTimeout(() => waiter.settle(undefined), timeoutMs);
      const waiter: Waiter = {
        key,
        since,
        settle: (end) => {
          clearTimeout(timeout);
          signal?.removeEventListener('abort', onAbort);
          this.drop(waiter);
          if (end === undefined) resolve(undefined);
          else if ('run' in end) resolve(end.run);
          else reject(end.error);
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.waiters.add(waiter);
      // One that is resumed can wait for the next look.
      if (this.timer === undefined || Date.now() - since < pausesMs[0]) this.lookIn(0);
    });
  }

  private drop(waiter: Waiter): void {
    this.waiters.delete(waiter);
    if (this.waiters.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private lookIn(pauseMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.look(), pauseMs);
  }

  private async look(): Promise<void> {
    this.timer = undefined;
    // The look that is going on may have missed a waiter that has just come: it looks again.
    if (this.looking) return;
    this.looking = true;
    const asked = new Set(this.waiters);
    try {
      const runs = await this.store.readEndedRuns([...asked].map(({ key }) => key));
      const ended = new Map(runs.map((run) => [nameOf(run), run]));
      // Also those that came meanwhile: a wait that was resumed during a slow look asks for the same run.
      for (const waiter of [...this.waiters]) {
        const run = ended.get(nameOf(waiter.key));
        if (run !== undefined) waiter.settle({ run });
      }
    } catch (error) {
      for (const waiter of asked) waiter.settle({ error });
    } finally {
      this.looking = false;
    }
    if (this.waiters.size === 0) return;
    const missed = [...this.waiters].some((waiter) => !asked.has(waiter));
    this.lookIn(missed ? 0 : this.pause());
  }

  /** The newest wait decides. */
  private pause(): number {
    const waited = Date.now() - Math.max(...[...this.waiters].map(({ since }) => since));
    return pausesMs[waited > slowAfterMs ? 2 : waited > midAfterMs ? 1 : 0];
  }
}

function nameOf({ sessionId, runId }: RunKey): string {
  return `${sessionId}\n${runId}`;
}

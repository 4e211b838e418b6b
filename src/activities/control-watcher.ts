import type { Store } from '../store/types.ts';

/** Milliseconds between two looks at the control records while effects run: abort reaches a provider well within 300 ms. */
const intervalMs = 50;

interface Watch {
  sessionId: string;
  runId: string;
  fire(): void;
}

/**
 * Sees abort records for all effects of this worker with one query per interval, and none while nothing runs. The abort
 * signal of the workflow comes as well, by heartbeat: a store that cannot be read delays an abort, it does not lose it.
 */
export class ControlWatcher {
  private readonly store: Pick<Store, 'readControls'>;
  private readonly watches = new Set<Watch>();
  private timer: NodeJS.Timeout | undefined;
  private reading = false;

  constructor(store: Pick<Store, 'readControls'>) {
    this.store = store;
  }

  /** Calls `fire` once when an abort names the run. Returns what ends the watch. */
  watch(sessionId: string, runId: string, fire: () => void): () => void {
    const watch = { sessionId, runId, fire };
    this.watches.add(watch);
    this.timer ??= setInterval(() => void this.look(), intervalMs);
    return () => this.drop(watch);
  }

  private drop(watch: Watch): void {
    this.watches.delete(watch);
    if (this.watches.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  private async look(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    try {
      const sessions = new Set([...this.watches].map((watch) => watch.sessionId));
      const controls = await this.store.readControls([...sessions]);
      const named = new Set(controls.map((control) => `${control.sessionId}\n${control.runId}`));
      for (const watch of [...this.watches]) {
        if (!named.has(`${watch.sessionId}\n${watch.runId}`)) continue;
        this.drop(watch);
        watch.fire();
      }
    } catch {
      // The next look tries again; the effects themselves report a store that stays away.
    } finally {
      this.reading = false;
    }
  }
}

import { AsyncLocalStorage } from 'node:async_hooks';

// An agent is shared by all of its sessions, so its signal is the one of the effect that is calling.
const storage = new AsyncLocalStorage<AbortSignal>();

/** The signal of the effect that runs the calling hook or tool; undefined outside of one. */
export function currentSignal(): AbortSignal | undefined {
  return storage.getStore();
}

export function withSignal<T>(signal: AbortSignal, call: () => T): T {
  return storage.run(signal, call);
}

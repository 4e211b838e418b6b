import { AsyncLocalStorage } from 'node:async_hooks';

/** Whom a hook or tool works for at this moment. */
export interface Caller {
  signal: AbortSignal;
  sessionId: string;
  runId?: string;
}

// An agent is shared by all of its sessions, so its signal is the one of the effect that is calling.
const storage = new AsyncLocalStorage<Caller>();

/** The signal of the effect that runs the calling hook or tool; undefined outside of one. */
export function currentSignal(): AbortSignal | undefined {
  return storage.getStore()?.signal;
}

/** The session and run that the calling hook or tool works for; undefined outside of one. */
export function currentSession(): Pick<Caller, 'sessionId' | 'runId'> | undefined {
  const caller = storage.getStore();
  if (caller === undefined) return undefined;
  const { sessionId, runId } = caller;
  return { sessionId, ...(runId === undefined ? {} : { runId }) };
}

export function withCaller<T>(caller: Caller, call: () => T): T {
  return storage.run(caller, call);
}

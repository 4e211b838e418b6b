import { setTimeout as delay } from 'node:timers/promises';
import { EverturnError, errorText } from '../common/errors.ts';

/** Tries of a hook, and milliseconds before the second one, doubled after that. */
const hookAttempts = 3;
const hookDelayMs = 100;

/**
 * Calls a hook, again if it throws, and gives up with its own last error. An aborted effect does not try again.
 */
export async function tryHook<T>(signal: AbortSignal, call: () => T | Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call();
    } catch (error) {
      if (attempt >= hookAttempts || signal.aborted) throw error;
      await delay(hookDelayMs * 2 ** (attempt - 1), undefined, { signal, ref: false });
    }
  }
}

/** A hook whose throw ends the run: wrapped with its name, the cause kept, not retried any more. */
export async function callHook<T>(name: string, signal: AbortSignal, call: () => T | Promise<T>): Promise<T> {
  try {
    return await tryHook(signal, call);
  } catch (error) {
    throw normalizeHookError(name, error);
  }
}

function normalizeHookError(name: string, error: unknown): EverturnError {
  return new EverturnError('hook', `Hook ${name} failed: ${errorText(error)}`, {
    cause: error,
    details: { hook: name },
  });
}

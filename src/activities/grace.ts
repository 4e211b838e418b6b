import { setTimeout as delay } from 'node:timers/promises';

type Ended<T> = { kind: 'returned'; value: T } | { kind: 'threw'; error: unknown } | { kind: 'left' };

/**
 * Waits for work that may ignore its signal: once that has fired, it has the grace time to end, and is then left behind.
 * What it does after that is nobody's: it never becomes an unhandled rejection.
 */
export async function raceGrace<T>(
  running: Promise<T>,
  stop: { signal: AbortSignal; graceMs: number },
): Promise<Ended<T>> {
  const settled = running.then(
    (value): Ended<T> => ({ kind: 'returned', value }),
    (error: unknown): Ended<T> => ({ kind: 'threw', error }),
  );
  const finished = new AbortController();
  try {
    return await Promise.race([settled, leftBehind(stop, finished.signal)]);
  } finally {
    finished.abort();
  }
}

async function leftBehind(
  stop: { signal: AbortSignal; graceMs: number },
  finished: AbortSignal,
): Promise<{ kind: 'left' }> {
  await new Promise<void>((resolve) => {
    if (stop.signal.aborted) resolve();
    else stop.signal.addEventListener('abort', () => resolve(), { once: true, signal: finished });
  });
  await delay(stop.graceMs, undefined, { signal: finished, ref: false }).catch(() => {});
  return { kind: 'left' };
}

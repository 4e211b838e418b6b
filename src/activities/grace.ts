type Ended<T> = { kind: 'returned'; value: T } | { kind: 'threw'; error: unknown } | { kind: 'left' };

/**
 * Waits for work that may ignore its signal: once that has fired, it has the grace time to end, and is then left behind.
 * What it does after that is nobody's: it never becomes an unhandled rejection.
 */
export function raceGrace<T>(running: Promise<T>, stop: { signal: AbortSignal; graceMs: number }): Promise<Ended<T>> {
  const { signal, graceMs } = stop;
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    const onStop = () => {
      timer = setTimeout(() => end({ kind: 'left' }), graceMs);
      timer.unref();
    };
    const end = (ended: Ended<T>) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onStop);
      resolve(ended);
    };
    running.then(
      (value) => end({ kind: 'returned', value }),
      (error: unknown) => end({ kind: 'threw', error }),
    );
    if (signal.aborted) onStop();
    else signal.addEventListener('abort', onStop, { once: true });
  });
}

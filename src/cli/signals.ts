export type EndSignal = 'SIGINT' | 'SIGTERM';

/**
 * Calls the listener at every Ctrl-C and SIGTERM, with the number of those that came before. Meanwhile none of them ends
 * the process by itself. Returns what gives them back their usual effect.
 */
export function onEndSignals(listener: (before: number, signal: EndSignal) => void): () => void {
  let before = 0;
  const listen = (signal: NodeJS.Signals) => {
    before += 1;
    listener(before - 1, signal as EndSignal);
  };
  process.on('SIGINT', listen);
  process.on('SIGTERM', listen);
  return () => {
    process.removeListener('SIGINT', listen);
    process.removeListener('SIGTERM', listen);
  };
}

/** Ends this process without finishing anything, with the exit code that shells give for the signal. */
export function endNow(signal: EndSignal): never {
  process.exit(exitCodeOfSignal(signal));
}

export function exitCodeOfSignal(signal: EndSignal): number {
  return signal === 'SIGINT' ? 130 : 143;
}

/** Milliseconds that a group of commits waits at most: a live thread that hangs costs readers the deltas, not a session its commits. */
const longestWaitMs = 250;

/**
 * Keeps the order between the store's two threads: a commit is not readable before the live deltas that were sent ahead
 * of it, although nobody waits for these before sending it. Writes of deltas are counted as they are sent and as they are
 * done (also those that failed); the count is 32 bits and goes round.
 */
export class DeltaOrder {
  readonly done: Int32Array<SharedArrayBuffer>;
  #sent = 0;
  /** How many were done when a wait was given up: until there are more, nothing waits again. */
  #stuckAt: number | undefined;

  constructor(memory = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.done = new Int32Array(memory);
  }

  /** What crosses to the threads. */
  get memory(): SharedArrayBuffer {
    return this.done.buffer;
  }

  /** Writes of deltas that were sent so far. */
  get sent(): number {
    return this.#sent;
  }

  noteSent(): void {
    this.#sent = (this.#sent + 1) | 0;
  }

  noteDone(writes: number): void {
    Atomics.add(this.done, 0, writes);
    Atomics.notify(this.done, 0);
  }

  /** Blocks the thread until so many writes are done. They take a fraction of a millisecond, and run beside the transaction. */
  wait(sent: readonly number[]): void {
    const deadline = performance.now() + longestWaitMs;
    for (;;) {
      const done = Atomics.load(this.done, 0);
      if (done === this.#stuckAt || sent.every((count) => ((done - count) | 0) >= 0)) return;
      this.#stuckAt = undefined;
      const left = deadline - performance.now();
      if (left > 0) Atomics.wait(this.done, 0, done, left);
      else this.#stuckAt = done;
    }
  }
}

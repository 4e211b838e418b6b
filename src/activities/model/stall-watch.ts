/**
 * Calls `onStall` once when nothing was heard for `timeoutMs`. Time in which it is paused does not count: while the
 * caller's own hook runs, silence is not the provider's fault. Keeps no process alive after `stop`.
 */
export class StallWatch {
  readonly #timer: NodeJS.Timeout;
  readonly #onStall: () => void;
  #heard = 0;
  #pauses = 0;
  #stopped = false;

  constructor(timeoutMs: number, onStall: () => void) {
    this.#onStall = onStall;
    this.#timer = setTimeout(() => this.#expired(), timeoutMs);
  }

  /** Something arrived: the clock starts anew. */
  touch(): void {
    this.#heard += 1;
    if (!this.#stopped) this.#timer.refresh();
  }

  pause(): void {
    this.#pauses += 1;
  }

  resume(): void {
    this.#pauses -= 1;
    this.touch();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #expired(): void {
    const heard = this.#heard;
    // A process that was frozen runs its timers before it reads its sockets: look at what waits there first.
    setImmediate(() => {
      if (this.#stopped || this.#heard !== heard) return;
      if (this.#pauses > 0) this.#timer.refresh();
      else this.#onStall();
    });
  }
}

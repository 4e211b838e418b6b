import type { SessionEvent } from 'everturn';
import type { Transcript } from '../transcript.ts';

interface Waiter {
  wanted(event: SessionEvent): boolean;
  resolve(event: SessionEvent): void;
  reject(error: unknown): void;
}

/** Shows the events of a session while they come, and lets others wait for one of them. */
export class LiveTranscript {
  readonly #transcript: Transcript;
  readonly #write: (text: string) => void;
  readonly #waiters = new Set<Waiter>();
  #broken: { error: unknown } | undefined;
  #lastWasNote = false;

  constructor(transcript: Transcript, write: (text: string) => void) {
    this.#transcript = transcript;
    this.#write = write;
  }

  /** Returns when the events end. What breaks them reaches everybody who waits. */
  async follow(events: AsyncIterable<SessionEvent>): Promise<void> {
    try {
      for await (const event of events) {
        this.#show(this.#transcript.render(event), false);
        for (const waiter of [...this.#waiters]) {
          if (!waiter.wanted(event)) continue;
          this.#waiters.delete(waiter);
          waiter.resolve(event);
        }
      }
      throw new Error('The events ended');
    } catch (error) {
      this.#broken = { error };
      for (const waiter of this.#waiters) waiter.reject(error);
    }
  }

  /** The next event that is wanted. Ask before causing it: events that have been shown are not looked at again. */
  next(wanted: (event: SessionEvent) => boolean): Promise<SessionEvent> {
    const { promise, resolve, reject } = Promise.withResolvers<SessionEvent>();
    // Somebody may wait and be gone when it breaks.
    promise.catch(() => undefined);
    if (this.#broken === undefined) this.#waiters.add({ wanted, resolve, reject });
    else reject(this.#broken.error);
    return promise;
  }

  note(text: string): void {
    this.#show(this.#transcript.note(text), true);
  }

  /** Notes stand apart from what happens. */
  #show(text: string, isNote: boolean): void {
    if (text === '') return;
    if (isNote !== this.#lastWasNote) this.#write(this.#transcript.note(''));
    this.#write(text);
    this.#lastWasNote = isNote;
  }
}

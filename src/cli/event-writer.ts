import type { SessionEvent } from '../common/events.ts';
import type { Output } from './output.ts';
import { Transcript } from './transcript.ts';

/** Writes a session's events as they come: a transcript, or with `--json` each event as one line. */
export class EventWriter {
  readonly #out: Output;
  readonly #transcript: Transcript;

  constructor(out: Output) {
    this.#out = out;
    this.#transcript = new Transcript(out.ink);
  }

  write(event: SessionEvent): void {
    if (this.#out.json) this.#out.object(lean(event));
    else this.#out.text(this.#transcript.render(event));
  }

  /** A line of the command's own, which does not break into a streamed one. */
  line(text: string): void {
    this.#out.text(`${this.#transcript.break()}${text}\n`);
  }

  /** Ends a line that is open. */
  end(): void {
    this.#out.text(this.#transcript.break());
  }

  note(text: string, value: object): void {
    this.end();
    this.#out.note(text, value);
  }
}

/** An update says what came; the whole message so far, once for every delta, would grow with the square of its length. */
function lean(event: SessionEvent): object {
  if (event.type !== 'message_update') return event;
  const { message: _, ...rest } = event;
  return rest;
}

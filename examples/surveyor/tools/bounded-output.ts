/** Keeps the beginning and the end of a program's output, and counts what it drops between. */
export class BoundedOutput {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  #head: Buffer[] = [];
  #headLength = 0;
  #tail: Buffer[] = [];
  #tailLength = 0;
  /** All bytes that came, kept or not. */
  total = 0;

  constructor(headBytes: number, tailBytes: number) {
    this.#headBytes = headBytes;
    this.#tailBytes = tailBytes;
  }

  add(chunk: Buffer): void {
    this.total += chunk.length;
    const room = this.#headBytes - this.#headLength;
    if (room > 0) {
      const part = chunk.subarray(0, room);
      this.#head.push(part);
      this.#headLength += part.length;
    }
    if (chunk.length > room) this.#addToTail(chunk.subarray(Math.max(0, room)));
  }

  /** The text, with a note in the middle when something was dropped. Bytes that are not UTF-8 become U+FFFD. */
  text(): string {
    const head = Buffer.concat(this.#head).toString('utf8');
    if (this.#tailLength === 0) return head;
    const tail = Buffer.concat(this.#tail);
    const kept = tail.subarray(Math.max(0, tail.length - this.#tailBytes));
    const dropped = this.total - this.#headLength - kept.length;
    if (dropped === 0) return Buffer.concat([...this.#head, kept]).toString('utf8');
    return `${head}\n[… ${dropped} bytes left out …]\n${kept.toString('utf8')}`;
  }

  /** The last `bytes` of what came, for progress. */
  end(bytes: number): string {
    const kept = Buffer.concat(this.#tailLength > 0 ? this.#tail : this.#head);
    return kept.subarray(Math.max(0, kept.length - bytes)).toString('utf8');
  }

  #addToTail(chunk: Buffer): void {
    // A copy, since a small part would keep the whole chunk alive.
    this.#tail.push(Buffer.from(chunk));
    this.#tailLength += chunk.length;
    while (this.#tailLength - (this.#tail[0]?.length ?? 0) >= this.#tailBytes) {
      this.#tailLength -= this.#tail.shift()?.length ?? 0;
    }
  }
}

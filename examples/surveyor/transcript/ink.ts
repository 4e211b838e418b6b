/** Text attributes of a terminal, or none. */
export class Ink {
  readonly #on: boolean;

  constructor(on: boolean) {
    this.#on = on;
  }

  bold = (text: string): string => this.#with(1, 22, text);
  dim = (text: string): string => this.#with(2, 22, text);
  red = (text: string): string => this.#with(31, 39, text);
  green = (text: string): string => this.#with(32, 39, text);
  yellow = (text: string): string => this.#with(33, 39, text);
  cyan = (text: string): string => this.#with(36, 39, text);

  #with(begin: number, end: number, text: string): string {
    return this.#on ? `\u001b[${begin}m${text}\u001b[${end}m` : text;
  }
}

/** Colours only where a person looks, and not where NO_COLOR asks for none. */
export function wantsColour(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && !env.NO_COLOR;
}

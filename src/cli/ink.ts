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

/** Text from outside as it may stand on a terminal: line breaks and tabs stay, nothing else can move or paint it. */
export function harmless(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]/gu, '');
}

/** One line of at most `width` characters. */
export function oneLine(text: string, width: number): string {
  const flat = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  const characters = [...flat];
  return characters.length > width ? `${characters.slice(0, width - 1).join('')}…` : flat;
}

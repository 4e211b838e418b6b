import { begunSecrets, begunWithin, secretNames, wellKnownSecrets } from './secret-patterns.ts';

export interface RedactorOptions {
  /** Shapes of your own. With a group called `secret` only that part is replaced. */
  patterns?: readonly RegExp[];
  /** Secrets that this process knows, such as the values of environment variables: they are found as they stand. */
  values?: readonly string[];
  /** False: the well-known shapes (keys of providers and clouds, tokens, private keys, passwords in URLs) are not looked for. */
  wellKnown?: boolean;
  /** Fields whose texts are replaced whole, at any depth. Default: password, token, authorization and the like. */
  fields?: RegExp;
  /** What stands in place of a secret. Default: [redacted]. */
  replacement?: string;
}

/** Replaces secrets in texts and in plain JSON values. */
export class Redactor {
  private readonly patterns: RegExp[];
  private readonly values: string[];
  private readonly fields: RegExp;
  private readonly replacement: string;

  constructor({
    patterns = [],
    values = [],
    wellKnown = true,
    fields = secretNames,
    replacement = '[redacted]',
  }: RedactorOptions) {
    const all = [...patterns, ...(wellKnown ? Object.values(wellKnownSecrets) : [])];
    this.patterns = all.map(({ source, flags }) => new RegExp(source, `${flags.replace(/[gyd]/g, '')}gd`));
    // The longest first: one secret may be the beginning of another.
    this.values = values.toSorted((left, right) => right.length - left.length);
    this.fields = new RegExp(fields.source, fields.flags.replace(/[gy]/g, ''));
    this.replacement = replacement;
  }

  text(text: string): string {
    return this.replaceRanges([text], this.find(text))[0] ?? text;
  }

  /** The same for a text that may go on: it also hides what may become a secret at its end. */
  growingText(text: string): string {
    const whole = this.text(text);
    const before = whole.slice(0, -begunWithin);
    const tail = whole.slice(-begunWithin);
    const at = Math.min(
      ...begunSecrets.map((pattern) => before.length + (pattern.exec(tail)?.index ?? tail.length)),
      ...this.values.map((value) => whole.length - overlap(whole, value)),
    );
    return at < whole.length ? `${whole.slice(0, at)}${this.replacement}` : whole;
  }

  /** Texts that follow each other: a secret that goes over their borders is found too. */
  texts(texts: readonly string[]): string[] {
    const alone = texts.map((text) => this.text(text));
    return alone.length < 2 ? alone : this.replaceRanges(alone, this.find(alone.join('')));
  }

  /** Every text in a plain JSON value, names of fields included. */
  value<T>(value: T, text: (text: string) => string = (plain) => this.text(plain)): T {
    return this.walk(value, text, false) as T;
  }

  private walk(value: unknown, text: (text: string) => string, secret: boolean): unknown {
    if (typeof value === 'string') return secret && value !== '' ? this.replacement : text(value);
    if (Array.isArray(value)) return value.map((item) => this.walk(item, text, secret));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        text(name),
        this.walk(item, text, secret || this.fields.test(name)),
      ]),
    );
  }

  private find(text: string): [from: number, to: number][] {
    const found: [number, number][] = [];
    for (const pattern of this.patterns) {
      for (const match of text.matchAll(pattern))
        found.push(match.indices?.groups?.secret ?? [match.index, match.index + match[0].length]);
    }
    for (const value of this.values) {
      for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + value.length))
        found.push([at, at + value.length]);
    }
    return found.filter(([from, to]) => to > from && text.slice(from, to) !== this.replacement);
  }

  /** Replaces ranges of the joined texts; of a range over a border the replacement stands in the first text. */
  private replaceRanges(texts: readonly string[], ranges: [from: number, to: number][]): string[] {
    if (ranges.length === 0) return [...texts];
    const merged = merge(ranges);
    let start = 0;
    return texts.map((text) => {
      let result = '';
      let done = start;
      const end = start + text.length;
      for (const [from, to] of merged) {
        if (to <= start || from >= end) continue;
        result += text.slice(done - start, Math.max(from, start) - start);
        if (from >= start) result += this.replacement;
        done = Math.min(to, end);
      }
      result += text.slice(done - start);
      start = end;
      return result;
    });
  }
}

function merge(ranges: [from: number, to: number][]): [from: number, to: number][] {
  const merged: [number, number][] = [];
  for (const [from, to] of ranges.toSorted(([left], [right]) => left - right)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** How many characters of the value the text ends with, without being all of it. */
function overlap(text: string, value: string): number {
  for (let length = Math.min(value.length - 1, text.length); length > 0; length--)
    if (text.endsWith(value.slice(0, length))) return length;
  return 0;
}

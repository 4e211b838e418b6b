import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { defineTool, type Tool } from 'everturn';
import { z } from 'zod';
import type { Workspace } from '../workspace.ts';

const maxLines = 2_000;
const maxLineLength = 2_000;
const maxCharacters = 50_000;

const parameters = z.object({
  path: z.string().describe('File, relative to the workspace.'),
  offset: z.number().int().min(1).default(1).describe('First line to show, from 1.'),
  limit: z.number().int().min(1).max(maxLines).default(maxLines).describe('Number of lines.'),
});

/** Reads text of any length in bounded memory: what is not shown is not kept. */
export function readTool(workspace: Workspace): Tool {
  return defineTool({
    name: 'read',
    description:
      `Reads a text file of the workspace, at most ${maxLines} lines or ${maxCharacters} characters at a time. ` +
      'Use offset and limit for the rest. Binary files are refused.',
    parameters,
    replay: 'safe',
    timeoutMs: 60_000,
    async execute({ path, offset, limit }, { signal }) {
      const file = await workspace.existing(path);
      const stats = await stat(file);
      if (stats.isDirectory()) throw new Error(`"${path}" is a folder. Use list for folders.`);
      // A pipe or a device would never end.
      if (!stats.isFile()) throw new Error(`"${path}" is not a regular file.`);
      if (stats.size === 0) return `[${path} is empty]`;
      const window = new LineWindow(offset, limit);
      await feed(window, file, path, signal);
      return window.render(path);
    },
  });
}

async function feed(window: LineWindow, file: string, path: string, signal: AbortSignal): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const binary = () =>
    new Error(`"${path}" is binary, or not UTF-8. Use bash (file, strings, wc -c) to learn about it.`);
  const decode = (chunk?: Buffer): string => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch {
      throw binary();
    }
  };
  for await (const chunk of createReadStream(file, { signal }) as AsyncIterable<Buffer>) {
    if (chunk.includes(0)) throw binary();
    if (!window.add(decode(chunk))) return;
  }
  window.add(decode());
  window.end();
}

/** Keeps the wanted lines of a text that comes in pieces. */
class LineWindow {
  readonly #offset: number;
  readonly #limit: number;
  readonly #lines: string[] = [];
  #characters = 0;
  #line = 1;
  #current = '';
  #currentLength = 0;
  #more = false;

  constructor(offset: number, limit: number) {
    this.#offset = offset;
    this.#limit = limit;
  }

  /** False when the window is full and there is more. */
  add(text: string): boolean {
    let start = 0;
    while (start < text.length) {
      if (this.#isFull()) {
        this.#more = true;
        return false;
      }
      const end = text.indexOf('\n', start);
      this.#grow(text.slice(start, end === -1 ? text.length : end));
      if (end === -1) return true;
      this.#finishLine();
      start = end + 1;
    }
    return true;
  }

  end(): void {
    if (this.#currentLength > 0) this.#finishLine();
  }

  render(path: string): string {
    const count = this.#line - 1;
    if (this.#lines.length === 0) return `[${path} has ${count} lines, there is no line ${this.#offset}]`;
    const last = this.#offset + this.#lines.length - 1;
    const note = this.#more
      ? `\n[lines ${this.#offset} to ${last}; there are more: go on with offset ${last + 1}]`
      : this.#offset > 1
        ? `\n[lines ${this.#offset} to ${last}, the end]`
        : '';
    return this.#lines.join('\n') + note;
  }

  #isFull(): boolean {
    return this.#lines.length >= this.#limit || this.#characters >= maxCharacters;
  }

  #grow(piece: string): void {
    const room = maxLineLength - this.#current.length;
    if (room > 0 && this.#line >= this.#offset) this.#current += piece.slice(0, room);
    this.#currentLength += piece.length;
  }

  #finishLine(): void {
    if (this.#line >= this.#offset) {
      const cut = this.#currentLength - this.#current.length;
      const text = cut > 0 ? `${this.#current}… [${cut} more characters]` : this.#current.replace(/\r$/, '');
      this.#lines.push(text);
      this.#characters += text.length + 1;
    }
    this.#line += 1;
    this.#current = '';
    this.#currentLength = 0;
  }
}

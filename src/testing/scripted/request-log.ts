import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs';
import type { ScriptedRequest } from './types.ts';

/**
 * The requests of a log, oldest first; none when the file does not exist yet. A last line that is not complete (a
 * process was killed while it wrote) is left out.
 */
export function readRequests(path: string): ScriptedRequest[] {
  return existsSync(path) ? parseLines(readFileSync(path, 'utf8')) : [];
}

/** Counts requests by kind, and writes them to a file that other processes may write to as well. */
export class RequestLog {
  readonly #path: string | undefined;
  readonly #counts = new Map<string, number>();
  /** Bytes of the file that are counted already: each line is read once, however long the log becomes. */
  #counted = 0;

  constructor(path: string | undefined) {
    this.#path = path;
  }

  /** Gives the request its attempt, and adds it in one write: a request that gets an answer is in the log before. */
  add(request: ScriptedRequest): void {
    if (this.#path !== undefined) this.#countNew(this.#path);
    request.attempt = 1 + (this.#counts.get(kindOf(request)) ?? 0);
    if (this.#path === undefined) this.#count(request);
    else appendFileSync(this.#path, `${JSON.stringify(request)}\n`);
  }

  #countNew(path: string): void {
    if (!existsSync(path)) return;
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - this.#counted);
      readSync(file, bytes, 0, bytes.length, this.#counted);
      const complete = bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
      this.#counted += complete.length;
      for (const request of parseLines(complete.toString('utf8'))) this.#count(request);
    } finally {
      closeSync(file);
    }
  }

  #count(request: ScriptedRequest): void {
    const kind = kindOf(request);
    this.#counts.set(kind, 1 + (this.#counts.get(kind) ?? 0));
  }
}

function parseLines(text: string): ScriptedRequest[] {
  const lines = text.split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as ScriptedRequest);
}

function kindOf({ model, reply, options }: ScriptedRequest): string {
  return `${model} ${options.sessionId ?? ''} ${reply}`;
}

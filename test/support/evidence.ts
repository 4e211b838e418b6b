import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json } from '../../src/common/json.ts';

/**
 * Files of a folder through which a test and the workers under test talk, whatever is killed in between: logs to which
 * the worker adds lines of JSON, and gates, which are files whose being there holds or releases it.
 */
export class Evidence {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Evidence of its own in a folder below. */
  of(name: string): Evidence {
    const folder = this.path(name);
    mkdirSync(folder, { recursive: true });
    return new Evidence(folder);
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Adds a line in one write: it is there even if the process is killed right after. */
  note(log: string, line: Record<string, Json>): void {
    appendFileSync(this.path(log), `${JSON.stringify({ ...line, pid: process.pid })}\n`);
  }

  read(log: string): EvidenceLine[] {
    if (!this.has(log)) return [];
    const lines = readFileSync(this.path(log), 'utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as EvidenceLine);
  }

  text(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  has(name: string): boolean {
    return existsSync(this.path(name));
  }

  put(name: string, text = ''): void {
    writeFileSync(this.path(name), text);
  }

  /** Waits until the file is there. */
  async until(name: string, signal?: AbortSignal): Promise<void> {
    while (!this.has(name)) await delay(10, undefined, signal ? { signal } : {});
  }

  async untilGone(name: string, signal?: AbortSignal): Promise<void> {
    while (this.has(name)) await delay(10, undefined, signal ? { signal } : {});
  }

  remove(name: string): void {
    rmSync(this.path(name), { force: true });
  }
}

export type EvidenceLine = Record<string, Json> & { pid: number };

import { setTimeout as delay } from 'node:timers/promises';
import type { ModelReply } from '../model.ts';

const padding = '.'.repeat(40);

/** The prompt for `pacedReply`: so many chunks, so many a second. */
export function pacedPrompt(chunks: number, rate: number): string {
  return `paced ${chunks} ${rate}`;
}

/** A reply in chunks at an even pace, each with its number and the time when it was handed over, some 60 bytes. */
export function pacedReply(prompt: string): ModelReply {
  const [, chunks = 0, rate = 1] = /paced (\d+) (\d+)/.exec(prompt)?.map(Number) ?? [];
  return { text: paced(chunks, rate) };
}

async function* paced(chunks: number, rate: number): AsyncGenerator<string> {
  const started = performance.now();
  for (let n = 0; n < chunks; n++) {
    const early = started + (n * 1_000) / rate - performance.now();
    if (early > 1) await delay(early);
    yield `${n} ${Date.now()} ${padding}`;
  }
}

export function readChunk(text: string): { n: number; at: number } {
  const [n = Number.NaN, at = Number.NaN] = text.split(' ').map(Number);
  return { n, at };
}

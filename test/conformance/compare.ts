import type { Observation } from './observation.ts';
import { playOnPiHarness } from './pi-harness.ts';
import { playOnPiLoop } from './pi-loop.ts';
import { applyDifferences } from './rules.ts';
import type { Scenario } from './scenario.ts';

export interface Comparison {
  agree: boolean;
  /** Readable, empty when the sides agree. */
  difference: string;
  /** Numbers of the differences that were applied. */
  used: number[];
}

/** @param bare true: without what differences 1 and 43 give to pi's side while it plays */
export function playOnPi(scenario: Scenario, { bare = false } = {}): Promise<Observation> {
  return scenario.setup.layer === 'loop' ? playOnPiLoop(scenario, bare) : playOnPiHarness(scenario, bare);
}

const parts = [
  'transcript',
  'requests',
  'calls',
  'policyCalls',
  'events',
  'ends',
] as const satisfies (keyof Observation)[];

/**
 * Both sides must agree in everything that was observed, but for the numbered differences.
 * @param plain true: without them
 */
export function compare(
  scenario: Scenario,
  pi: Observation,
  everturn: Observation,
  { plain = false } = {},
): Comparison {
  const { expected, actual, used } = plain
    ? { expected: pi, actual: everturn, used: [] }
    : applyDifferences(scenario, pi, everturn);
  const difference = parts
    .map((part) => diff(part, expected[part], actual[part]))
    .filter(Boolean)
    .join('\n');
  return { agree: difference === '', difference, used };
}

const shownBefore = 3;
const shownAfter = 3;
const lineLength = 260;

/** The first item that differs, with what stands around it; empty when all agree. */
function diff(part: string, expected: readonly unknown[], actual: readonly unknown[]): string {
  const [left, right] = [expected.map(line), actual.map(line)];
  const length = Math.max(left.length, right.length);
  const first = Array.from({ length }, (_, index) => index).find((index) => left[index] !== right[index]);
  if (first === undefined) return '';
  const at = firstDifference(left[first] ?? '', right[first] ?? '');
  const shown = (lines: string[]) =>
    lines.slice(Math.max(0, first - shownBefore), first + shownAfter + 1).map((text, offset) => {
      const index = Math.max(0, first - shownBefore) + offset;
      return index === first ? `  > ${around(text, at)}` : `    ${around(text, 0)}`;
    });
  return [`${part} differ at ${first}`, ' pi:', ...shown(left), ' Everturn:', ...shown(right)].join('\n');
}

function line(value: unknown): string {
  return JSON.stringify(value) ?? 'undefined';
}

function firstDifference(left: string, right: string): number {
  let at = 0;
  while (at < left.length && left[at] === right[at]) at += 1;
  return at;
}

/** The part of a long line that shows the place. */
function around(text: string, at: number): string {
  const from = Math.max(0, at - lineLength / 2);
  const part = text.slice(from, from + lineLength);
  return `${from > 0 ? '…' : ''}${part}${from + lineLength < text.length ? '…' : ''}`;
}

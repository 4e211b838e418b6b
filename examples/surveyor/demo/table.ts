import type { SessionStats } from 'everturn/client';
import { number } from '../offline/format.ts';

/** What was durable, as lines of two columns. */
export function durabilityTable(stats: SessionStats): string[] {
  const kinds = Object.entries(stats.byKind)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([kind, counts]) => row(`  ${kind}`, `${number(counts.effects)} in ${number(counts.attempts)} attempts`));
  const { usage } = stats;
  return [
    row('turns', number(stats.turns)),
    row('activities', `${number(stats.effects)} in ${number(stats.attempts)} attempts`),
    ...kinds,
    row('tokens', `${number(usage.input + usage.cacheRead + usage.cacheWrite)} in, ${number(usage.output)} out`),
    row('cost', `$${usage.cost.toFixed(4)}`),
    row('history', `${number(stats.historyEvents)} events, ${number(stats.historyBytes)} bytes`),
  ];
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(24)}${value}`;
}

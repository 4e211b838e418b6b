import type { ConformanceReport } from './conformance.ts';

/** The report for people. */
export function reportText(report: ConformanceReport): string {
  const { scenarios, agree, seed, seconds, differencesUsed, features, missing, disturbed, failure } = report;
  const table = (counts: Record<string, number>) =>
    Object.entries(counts).map(([name, count]) => `  ${String(count).padStart(6)}  ${name}`);
  return [
    `${agree} of ${scenarios} scenarios agree with pi 0.83.0 (seed ${seed}, ${seconds} s${disturbed > 0 ? `, ${disturbed} plays repeated` : ''}).`,
    '',
    'Scenarios in which each difference of docs/differences.md was applied:',
    ...table(differencesUsed),
    '',
    'Scenarios that exercised each feature:',
    ...table(features),
    ...(missing.length === 0 ? [] : ['', `Never exercised: ${missing.join(', ')}`]),
    ...(failure === undefined
      ? []
      : [
          '',
          `They disagree. Again: --seed ${failure.seed} --path ${failure.path}`,
          JSON.stringify(failure.scenario),
          failure.difference,
        ]),
  ].join('\n');
}

/** What programs read: one line. */
export function reportLine({
  scenarios,
  agree,
  seed,
  seconds,
  differencesUsed,
  missing,
  failure,
}: ConformanceReport): string {
  return JSON.stringify({
    scenarios,
    agree,
    seed,
    seconds,
    differencesUsed,
    missing,
    ...(failure === undefined ? {} : { failure }),
  });
}

export function isPassed({ scenarios, agree, missing }: ConformanceReport): boolean {
  return scenarios === agree && missing.length === 0;
}

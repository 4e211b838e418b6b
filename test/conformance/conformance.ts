import fc from 'fast-check';
import { scenarios as arbitrary } from './arbitrary.ts';
import { type Comparison, compare, playOnPi } from './compare.ts';
import type { EverturnObservation } from './everturn-play.ts';
import { EverturnStage, type StageOptions } from './everturn-stage.ts';
import { featuresOf, requiredFeatures } from './features.ts';
import type { Observation } from './observation.ts';
import type { Scenario } from './scenario.ts';

export interface ConformanceOptions extends StageOptions {
  /** How many scenarios. */
  scenarios: number;
  seed: number;
  /** Sessions at the same time. Default: 16. */
  concurrency?: number;
  /** Plays the one scenario that a failed run has told by its path. */
  path?: string;
  /** Milliseconds that a failing scenario is made smaller. Default: 180,000. */
  shrinkMs?: number;
  /** For tests of this program: changes what Everturn is taken to have done. */
  alter?: (everturn: Observation) => void;
  /** Hears of each scenario that is through. */
  onProgress?: (done: number) => void;
}

export interface ConformanceReport {
  scenarios: number;
  agree: number;
  seed: number;
  seconds: number;
  /** In how many scenarios each numbered difference was applied. */
  differencesUsed: Record<string, number>;
  /** How many scenarios exercised each feature. */
  features: Record<string, number>;
  /** Required features that nothing exercised; told from 200 scenarios on. */
  missing: string[];
  /** Scenarios that were played again, since Temporal had tried an effect twice. */
  disturbed: number;
  /** The smallest scenario that fast-check found to disagree. */
  failure?: { seed: number; path: string; scenario: Scenario; difference: string };
}

const enoughForAll = 200;
const attempts = 4;

/** Plays generated scenarios on pi and on Everturn, and compares. */
export async function runConformance(options: ConformanceOptions): Promise<ConformanceReport> {
  const { seed, concurrency = 16, onProgress } = options;
  const began = Date.now();
  const { path } = options;
  const which = path === undefined ? { numRuns: options.scenarios } : { numRuns: 1, path };
  const scenarios = fc.sample(arbitrary, { seed, ...which });
  const known = new Map<string, Comparison>();
  const counts = { used: new Map<string, number>(), features: new Map<string, number>(), disturbed: 0 };
  let agree = 0;
  const stage = await EverturnStage.open(options, scenarios);
  try {
    let next = 0;
    let done = 0;
    const lane = async () => {
      for (let scenario = scenarios[next++]; scenario !== undefined; scenario = scenarios[next++]) {
        const { comparison, everturn, disturbed } = await playBoth(stage, scenario, options.alter);
        known.set(JSON.stringify(scenario), comparison);
        if (comparison.agree) agree += 1;
        counts.disturbed += disturbed;
        for (const number of comparison.used) count(counts.used, String(number));
        for (const feature of featuresOf(scenario, everturn)) count(counts.features, feature);
        onProgress?.(++done);
      }
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
  } finally {
    await stage.close();
  }
  const failure = agree === scenarios.length ? undefined : await shrink(options, known);
  const missing =
    scenarios.length < enoughForAll ? [] : requiredFeatures.filter((feature) => !counts.features.has(feature));
  return {
    scenarios: scenarios.length,
    agree,
    seed,
    seconds: Math.round((Date.now() - began) / 100) / 10,
    differencesUsed: sortedCounts(counts.used),
    features: sortedCounts(counts.features),
    missing,
    disturbed: counts.disturbed,
    ...(failure === undefined ? {} : { failure }),
  };
}

/** A scenario in which an effect was tried again says nothing of the order of things: it is played again, not judged. */
export async function playBoth(
  stage: EverturnStage,
  scenario: Scenario,
  alter: (everturn: Observation) => void = () => undefined,
): Promise<{ comparison: Comparison; everturn: EverturnObservation; disturbed: number }> {
  const pi = await playOnPi(scenario);
  for (let disturbed = 0; ; disturbed++) {
    const everturn = await stage.play(scenario);
    alter(everturn);
    if (!everturn.disturbed) return { comparison: compare(scenario, pi, everturn), everturn, disturbed };
    if (disturbed + 1 === attempts) {
      const difference = `Effects were tried again in ${attempts} plays: this machine is too busy for an honest answer.`;
      return { comparison: { agree: false, difference, used: [] }, everturn, disturbed: attempts };
    }
  }
}

/** fast-check goes through the same scenarios again, from what is known of them, and makes the first failing one smaller. */
async function shrink(
  options: ConformanceOptions,
  known: Map<string, Comparison>,
): Promise<ConformanceReport['failure']> {
  const deadline = Date.now() + (options.shrinkMs ?? 180_000);
  const judge = async (scenario: Scenario): Promise<Comparison> => {
    const key = JSON.stringify(scenario);
    const before = known.get(key);
    if (before !== undefined) return before;
    if (Date.now() > deadline) return { agree: true, difference: '', used: [] };
    const stage = await EverturnStage.open(options, [scenario]);
    try {
      const { comparison } = await playBoth(stage, scenario, options.alter);
      known.set(key, comparison);
      return comparison;
    } finally {
      await stage.close();
    }
  };
  const property = fc.asyncProperty(arbitrary, async (scenario) => (await judge(scenario)).agree);
  const { seed, path } = options;
  const parameters = { seed, numRuns: options.scenarios, ...(path === undefined ? {} : { path }) };
  const { failed, counterexamplePath, counterexample } = await fc.check(property, parameters);
  const [scenario] = counterexample ?? [];
  if (!failed || scenario === undefined) return undefined;
  return { seed, path: counterexamplePath ?? '', scenario, difference: (await judge(scenario)).difference };
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function sortedCounts(counts: ReadonlyMap<string, number>): Record<string, number> {
  const entries = [...counts].sort(([left], [right]) => left.localeCompare(right, 'en', { numeric: true }));
  return Object.fromEntries(entries);
}

import type { LogRecord } from '../../src/common/events.ts';
import { readWholeLog } from '../support/transcript.ts';
import { allCases, blows, type Choice, choose, type FaultCase } from './cases.ts';
import type { Problem } from './check.ts';
import { pointsOf } from './points.ts';
import { promptText, type Scenario, scenarios } from './scenarios.ts';
import { FaultStage, type Ground } from './stage.ts';
import { type CaseResult, playWave } from './wave.ts';

/** Sessions that stand at their points at the same time. More of them wait longer for each other than they gain. */
const waveSize = 24;

/** The undisturbed runs of all scenarios: what each passes, and what it leaves in the log. */
export interface Undisturbed {
  points: Map<string, string[]>;
  logs: Map<string, LogRecord[]>;
}

export async function runUndisturbed(ground: Ground): Promise<Undisturbed> {
  const stage = await FaultStage.open(ground);
  try {
    await stage.startWorker();
    const points = new Map<string, string[]>();
    const logs = new Map<string, LogRecord[]>();
    const run = async (scenario: Scenario, index: number) => {
      const session = stage.session(index, scenario);
      await session.session.prompt(promptText, { runId: 'r1' });
      await session.session.result('r1');
      await session.session.waitForIdle();
      points.set(scenario.name, pointsOf(session.evidence));
      logs.set(scenario.name, await readWholeLog(stage.store, session.sessionId));
    };
    await Promise.all(scenarios.map(run));
    return { points, logs };
  } finally {
    await stage.end();
  }
}

/** What the matrix prints. */
export interface Tally {
  cases: number;
  passed: number;
  lost: number;
  twice: number;
  hung: number;
}

export interface MatrixOptions extends Choice {
  ground: Ground;
  onWave(results: readonly CaseResult[]): void;
}

/** Plays the chosen cases, two waves at a time. */
export async function playMatrix({ ground, onWave, ...choice }: MatrixOptions): Promise<Tally> {
  const { points, logs } = await runUndisturbed(ground);
  const chosen = choose(allCases(points), choice);
  const waves = blows.flatMap((blow) => wavesOf(chosen.filter((each) => each.blow === blow)));
  const results: CaseResult[] = [];
  const lane = async () => {
    for (let wave = waves.shift(); wave !== undefined; wave = waves.shift()) {
      const played = await playWave(wave, { ground, undisturbed: logs });
      results.push(...played);
      onWave(played);
    }
  };
  await Promise.all([lane(), lane()]);
  return tallyOf(results);
}

function wavesOf(cases: readonly FaultCase[]): FaultCase[][] {
  const waves = Math.ceil(cases.length / waveSize);
  return Array.from({ length: waves }, (_, wave) => cases.filter((_, index) => index % waves === wave));
}

export function tallyOf(results: readonly CaseResult[]): Tally {
  const having = (kind: Problem['kind']) =>
    results.filter(({ problems }) => problems.some((problem) => problem.kind === kind)).length;
  return {
    cases: results.length,
    passed: results.filter(({ problems }) => problems.length === 0).length,
    lost: having('lost'),
    twice: having('twice'),
    hung: having('hung'),
  };
}

import { expect, test } from '@jest/globals';
import { runConformance } from './conformance.ts';
import { suiteOptions } from './differences/both-sides.ts';
import type { Observation } from './observation.ts';
import { isPassed, reportLine, reportText } from './report.ts';

/** As if Everturn forgot the end of every call of `echo`. */
function forgetEnds(everturn: Observation): void {
  everturn.events = everturn.events.filter(({ type, tool }) => type !== 'tool_execution_end' || tool !== 'echo');
}

test('a disagreement is made smaller and told with its seed and path, by which it is found again', async () => {
  const broken = { ...suiteOptions(), scenarios: 8, seed: 1, alter: forgetEnds, shrinkMs: 10_000 };
  const report = await runConformance(broken);
  expect(isPassed(report)).toBe(false);
  expect(report.agree).toBeLessThan(report.scenarios);
  expect(report.failure).toMatchObject({ seed: 1, path: expect.stringMatching(/^\d/) });
  expect(report.failure?.difference).toMatch(/^events differ at \d+\n pi:.*"type":"tool_execution_end"/s);
  expect(reportText(report)).toContain(`--seed 1 --path ${report.failure?.path}`);
  expect(JSON.parse(reportLine(report))).toMatchObject({
    scenarios: 8,
    agree: report.agree,
    seed: 1,
    failure: { seed: 1 },
  });

  const path = report.failure?.path ?? '';
  const again = await runConformance({ ...broken, path, shrinkMs: 0 });
  expect(again).toMatchObject({ scenarios: 1, agree: 0 });
  expect(again.failure?.scenario).toEqual(report.failure?.scenario);
  const whole = await runConformance({ ...suiteOptions(), scenarios: 8, seed: 1, path });
  expect(whole).toMatchObject({ scenarios: 1, agree: 1 });
}, 180_000);

import { expect, test } from '@jest/globals';
import { runConformance } from './conformance.ts';
import { suiteOptions } from './differences/both-sides.ts';
import { isPassed, reportText } from './report.ts';

// More by hand: `npm run -s conformance -- --scenarios 5000 --seed 1`.
const scenarios = 200;
const seed = 20261130;

test('200 generated scenarios give the same on pi 0.83.0 and on Everturn, but for the numbered differences', async () => {
  const report = await runConformance({ ...suiteOptions(), scenarios, seed });
  if (!isPassed(report)) throw new Error(reportText(report));
  expect(report).toMatchObject({ scenarios, agree: scenarios, missing: [] });
}, 600_000);

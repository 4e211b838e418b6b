import { parseArgs } from 'node:util';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { bundleTestWorkflows, removeTestBundle } from '../support/bundle.ts';
import { startTemporalServer } from '../support/temporal-server.ts';
import { runConformance } from './conformance.ts';
import { isPassed, reportLine, reportText } from './report.ts';

/**
 * `npm run -s conformance -- --scenarios N --seed S --json`: exits with 1 when the sides disagree. `--seed S --path P`
 * plays the one scenario that such a run told.
 */
const { values } = parseArgs({
  options: {
    scenarios: { type: 'string', default: '200' },
    seed: { type: 'string' },
    path: { type: 'string' },
    concurrency: { type: 'string', default: '16' },
    json: { type: 'boolean', default: false },
  },
});

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  process.stderr.write(`--${name}: a whole number above 0, not "${text}"\n`);
  process.exit(2);
}

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
});
const scenarios = numberOf('scenarios', values.scenarios);
const seed = values.seed === undefined ? (Date.now() % 1_000_000) + 1 : numberOf('seed', values.seed);
const concurrency = numberOf('concurrency', values.concurrency);
const [server, codePath] = await Promise.all([startTemporalServer(), bundleTestWorkflows()]);
try {
  const onProgress = (done: number) => {
    if (!values.json && done % 100 === 0) process.stderr.write(`${done} of ${scenarios}\n`);
  };
  const path = values.path === undefined ? {} : { path: values.path };
  const stage = { address: server.address, codePath };
  const report = await runConformance({ ...stage, scenarios, seed, concurrency, onProgress, ...path });
  process.stdout.write(`${values.json ? reportLine(report) : reportText(report)}\n`);
  process.exitCode = isPassed(report) ? 0 : 1;
} finally {
  await server.stop();
  await removeTestBundle(codePath);
}

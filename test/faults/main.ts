import './outside-jest.ts';
import { parseArgs } from 'node:util';
import { bundleTestWorkflows, removeTestBundle } from '../support/bundle.ts';
import { startTemporalServer } from '../support/temporal-server.ts';
import type { CaseResult } from './wave.ts';

/**
 * `npm run -s faults -- [--json] [--seed S] [--cases N] [--only TEXT]`: plays the fault matrix and exits with 1 when a case
 * fails. What failed is told on stderr, by a name that `--only` repeats alone.
 */
const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    seed: { type: 'string' },
    cases: { type: 'string' },
    only: { type: 'string' },
  },
});

function numberOf(name: string, text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  process.stderr.write(`--${name}: a whole number above 0, not "${text}"\n`);
  process.exit(2);
}

const seed = values.seed === undefined ? (Date.now() % 1_000_000) + 1 : numberOf('seed', values.seed);
let done = 0;

function onWave(results: readonly CaseResult[]): void {
  done += results.length;
  if (!values.json) process.stderr.write(`${done} cases\n`);
  for (const { name, problems } of results) {
    if (problems.length === 0) continue;
    const texts = problems.map(({ kind, text }) => `  ${kind}: ${text.replaceAll('\n', '\n  ')}\n`);
    process.stderr.write(`FAILED ${name}\n${texts.join('')}  again: npm run -s faults -- --only '${name}'\n`);
  }
}

// Loaded once the stand-in for jest is there.
const { playMatrix } = await import('./matrix.ts');
const [server, bundle] = await Promise.all([startTemporalServer(), bundleTestWorkflows()]);
try {
  const tally = await playMatrix({
    ground: { address: server.address, bundle },
    seed,
    onWave,
    ...(values.cases === undefined ? {} : { cases: numberOf('cases', values.cases) }),
    ...(values.only === undefined ? {} : { only: values.only }),
  });
  if (values.json) process.stdout.write(`${JSON.stringify(tally)}\n`);
  else console.table({ seed, ...tally });
  process.exitCode = tally.cases > 0 && tally.passed === tally.cases ? 0 : 1;
} finally {
  await server.stop();
  await removeTestBundle(bundle);
}

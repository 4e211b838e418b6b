import { parseArgs } from 'node:util';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import type { Figures } from './lib.ts';
import { turns } from './turns.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    local: { type: 'boolean', default: false },
    sessions: { type: 'string' },
    turns: { type: 'string' },
    'context-kb': { type: 'string' },
    rate: { type: 'string' },
  },
});

type Option = 'sessions' | 'turns' | 'context-kb' | 'rate';

function count(option: Option, fallback: number): number {
  const value = Number(values[option] ?? fallback);
  if (Number.isInteger(value) && value >= 0) return value;
  throw new RangeError(`--${option} must be a whole number`);
}

const benches: Record<string, () => Promise<Figures>> = {
  turns: () => turns({ sessions: count('sessions', 1), turns: count('turns', 100), local: values.local }),
};

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
});
const bench = benches[positionals[0] ?? ''];
if (bench === undefined) {
  process.stderr.write(`Which benchmark? ${Object.keys(benches).join(', ')}\n`);
  process.exitCode = 2;
} else {
  const figures = await bench();
  if (values.json) process.stdout.write(`${JSON.stringify(figures)}\n`);
  else console.table(figures);
}

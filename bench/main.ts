import { parseArgs } from 'node:util';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { context } from './context.ts';
import { hooks } from './hooks.ts';
import type { Figures } from './lib.ts';
import { recovery } from './recovery.ts';
import { scale } from './scale.ts';
import { stream } from './stream.ts';
import { turns } from './turns.ts';

// npm run -s bench -- NAME [options] [--json]: docs/performance.md says what each figure means.

const options = {
  json: { type: 'boolean', default: false },
  local: { type: 'boolean', default: false },
  sessions: { type: 'string' },
  turns: { type: 'string' },
  'context-kb': { type: 'string' },
  rate: { type: 'string' },
  seconds: { type: 'string' },
} as const;

class UsageError extends Error {}

type NumberOption = 'sessions' | 'turns' | 'context-kb' | 'rate' | 'seconds';
type Values = { local: boolean; json: boolean } & { [Name in NumberOption]?: string };

const benches: Record<string, (values: Values) => Promise<Figures>> = {
  turns: (values) => {
    const sessions = count(values, 'sessions', 1);
    return turns({ sessions, turns: count(values, 'turns', sessions === 1 ? 200 : 20, 2), local: values.local });
  },
  context: (values) =>
    context({ turns: count(values, 'turns', 200, 20), contextKb: count(values, 'context-kb', 800, 0) }),
  recovery: () => recovery(),
  stream: (values) =>
    stream({
      sessions: count(values, 'sessions', 20),
      rate: count(values, 'rate', 75),
      seconds: count(values, 'seconds', 10),
    }),
  scale: (values) => scale({ sessions: count(values, 'sessions', 1_000), turns: count(values, 'turns', 3, 2) }),
  hooks: (values) => hooks({ turns: count(values, 'turns', 20, 3) }),
};

function count(values: Values, option: NumberOption, fallback: number, least = 1): number {
  const value = Number(values[option] ?? fallback);
  if (Number.isInteger(value) && value >= least) return value;
  throw new UsageError(`--${option} must be a whole number, ${least} or more`);
}

function print(figures: Figures, json: boolean): void {
  if (json) return void process.stdout.write(`${JSON.stringify(figures)}\n`);
  const tables = Object.entries(figures).filter(([, value]) => typeof value !== 'number');
  console.table(Object.fromEntries(Object.entries(figures).filter(([, value]) => typeof value === 'number')));
  for (const [, table] of tables) console.table(table);
}

async function main(args: string[]): Promise<number> {
  try {
    const { values, positionals } = parse(args);
    const [name = '', ...others] = positionals;
    const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
    if (bench === undefined || others.length > 0)
      throw new UsageError(`Which benchmark? One of ${Object.keys(benches).join(', ')}`);
    print(await bench(values), values.json);
    return 0;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}

function parse(args: string[]): { values: Values; positionals: string[] } {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  // Ctrl-C ends this process, and with it the server and the other processes, which watch it.
  shutdownSignals: [],
});
process.once('SIGINT', () => process.exit(130));
process.once('SIGTERM', () => process.exit(143));
process.exitCode = await main(process.argv.slice(2));

#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { EverturnError } from '../common/errors.ts';
import { addAbortCommand } from './commands/abort.ts';
import { addDevCommand } from './commands/dev.ts';
import { addRunCommand } from './commands/run.ts';
import { addSessionsCommand, addVerifyCommand } from './commands/sessions.ts';
import { addShowCommand } from './commands/show.ts';
import { addSteerCommands } from './commands/steer.ts';
import { addWorkerCommand } from './commands/worker.ts';
import { debugText, exitCodeOf, failureLine, isHelp } from './failure.ts';
import { endWithReader } from './output.ts';

function program(): Command {
  const all = new Command('everturn')
    .description('Durable agents: LLM agents as Temporal workflows. Every command has --help.')
    .version(version())
    .exitOverride()
    // Errors are told in one place, in one line.
    .configureOutput({ writeErr: () => undefined, outputError: () => undefined })
    .allowExcessArguments(false);
  addDevCommand(all);
  addWorkerCommand(all);
  addRunCommand(all);
  addSessionsCommand(all);
  addShowCommand(all);
  addSteerCommands(all);
  addAbortCommand(all);
  addVerifyCommand(all);
  return all;
}

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return manifest.version;
}

/** Older ones have no SQLite that holds, and read no TypeScript; they would fail in the middle. */
function requireNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return;
  throw new EverturnError('invalid_config', `Everturn needs Node 22.19 or later, this is ${process.versions.node}.`);
}

async function main(args: string[]): Promise<void> {
  endWithReader();
  try {
    requireNode();
    await program().parseAsync(args, { from: 'user' });
  } catch (error) {
    if (isHelp(error)) return;
    process.exitCode = exitCodeOf(error);
    process.stderr.write(`${failureLine(error, args.includes('--json'))}\n`);
    if (process.env.EVERTURN_DEBUG === '1') process.stderr.write(`${debugText(error)}\n`);
  }
}

await main(process.argv.slice(2));
// Failures of writes are told by events: they come first.
await new Promise((resolve) => setImmediate(resolve));
// What is still open here (a call that nobody waits for any more) must not hold a terminal.
process.exit();

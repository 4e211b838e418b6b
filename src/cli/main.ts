#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
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

async function main(args: string[]): Promise<void> {
  endWithReader();
  try {
    await program().parseAsync(args, { from: 'user' });
  } catch (error) {
    if (isHelp(error)) return;
    process.exitCode = exitCodeOf(error);
    process.stderr.write(`${failureLine(error, args.includes('--json'))}\n`);
    if (process.env.EVERTURN_DEBUG === '1') process.stderr.write(`${debugText(error)}\n`);
  }
}

await main(process.argv.slice(2));
// What is still open here (a call that nobody waits for any more) must not hold a terminal.
process.exit();

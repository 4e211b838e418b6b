import type { Command } from 'commander';
import type { EverturnWorker } from '../../worker/index.ts';
import { type AgentsFile, findWorkflows, loadAgents } from '../load-agents.ts';
import { Output } from '../output.ts';
import { type SessionFlags, type Settings, settingsOf, shownStore, withTemporalFlags } from '../settings.ts';
import { endNow, onEndSignals } from '../signals.ts';

export interface AgentFlags {
  agents?: string;
  workflows?: string;
  verbose?: boolean;
}

export function withAgentFlags(command: Command): Command {
  return command
    .option('--agents <file>', 'the file that exports the agents (EVERTURN_AGENTS, else everturn.agents.{ts,js,mjs})')
    .option(
      '--workflows <file>',
      'the file with the policies (EVERTURN_WORKFLOWS, else everturn.workflows.{ts,js,mjs}, else none)',
    )
    .option('--verbose', "show Temporal's warnings too");
}

export function addWorkerCommand(program: Command): void {
  withAgentFlags(
    withTemporalFlags(program.command('worker').description('carry out the sessions of the agents in a file')),
  ).action(async (flags: AgentFlags & SessionFlags) => {
    const out = new Output(flags.json);
    const settings = settingsOf(flags);
    const start = await prepareWorker(flags);
    const worker = await start(settings);
    tellReady(out, start.file, settings);
    const release = onEndSignals((before, signal) => {
      if (before > 0) endNow(signal);
      tellEnding(out);
      worker.shutdown();
    });
    await worker.run().finally(release);
    tellEnded(out);
  });
}

/**
 * Reads the files, and returns what creates a worker for their agents. Temporal's native code and the bundler are loaded
 * here: no other command waits for them.
 */
export async function prepareWorker(
  flags: AgentFlags,
): Promise<((settings: Settings) => Promise<EverturnWorker>) & { file: AgentsFile }> {
  const file = await loadAgents(flags.agents);
  const workflowsPath = findWorkflows(flags.workflows);
  const { createWorker, bundleWorkflows } = await import('../../worker/index.ts');
  const { quietTemporal } = await import('../quiet-temporal.ts');
  quietTemporal(flags.verbose ?? false);
  const workflowBundle = await bundleWorkflows(workflowsPath === undefined ? {} : { workflowsPath });
  const { agents, providers } = file;
  return Object.assign((settings: Settings) => createWorker({ ...settings, agents, providers, workflowBundle }), {
    file,
  });
}

export function tellReady(out: Output, file: AgentsFile, settings: Settings): void {
  const agents = file.agents.map((agent) => agent.name);
  const store = shownStore(settings.store);
  out.line(`worker ${process.pid} is ready: ${agents.join(', ')} (${file.path})`);
  out.line(`task queue "${settings.taskQueue}" of ${settings.address}, store ${store}`);
  out.object({ type: 'ready', pid: process.pid, agents, ...settings, store });
}

export function tellEnding(out: Output): void {
  out.line('ending: running tools get a few seconds, streams go on in another worker; once more ends at once');
  out.object({ type: 'ending' });
}

export function tellEnded(out: Output): void {
  out.line('ended');
  out.object({ type: 'ended' });
}

import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SessionEvent } from 'everturn';
import { AgentClient } from 'everturn/client';
import { LiveTranscript } from './demo/live.ts';
import { Stage } from './demo/stage.ts';
import { durabilityTable } from './demo/table.ts';
import { Ink, wantsColour } from './transcript/ink.ts';
import { Transcript } from './transcript.ts';

/** A real model takes its time; offline the demo takes half a minute. */
const timeLimitMs = 10 * 60_000;
const repository = fileURLToPath(new URL('../..', import.meta.url));
const colour = wantsColour(process.stdout, process.env);
const ink = new Ink(colour);

/**
 * A survey that outlives its worker: this process starts the run and watches, another one carries it out, is killed in
 * the middle of a tool, and a third one goes on. `stop` ends the demo at once.
 */
async function play(stage: Stage, stop: AbortSignal): Promise<void> {
  const stopped = new Promise<never>((_, reject) => {
    stop.addEventListener('abort', () => reject(stop.reason), { once: true });
  });
  stopped.catch(() => undefined);
  const unlessStopped = <T>(work: Promise<T>): Promise<T> => Promise.race([work, stopped]);
  const live = new LiveTranscript(new Transcript({ colour }), (text) => process.stdout.write(text));
  const tell = (text: string) => live.note(ink.yellow(`▌ ${text}`));

  tell(await stage.startServer());
  const first = stage.startWorker();
  tell(`In a process of its own: ${await unlessStopped(first.ready())}`);

  const client = await AgentClient.connect({ address: stage.address, store: stage.store, taskQueue: stage.name });
  stage.onEnd(() => client.close());
  const session = client.session(stage.name, { agent: 'surveyor' });
  const reading = new AbortController();
  const followed = live.follow(session.events({ signal: reading.signal }));
  stage.onEnd(async () => {
    reading.abort();
    await followed;
  });

  const moment = live.next(momentToKill());
  tell(`This process (${process.pid}) starts the run and only watches.`);
  await session.prompt('Survey this folder and write a report with real figures. Count the dependencies too.');

  const struck = await unlessStopped(moment);
  if (struck.type === 'agent_end') {
    throw new Error(struck.error?.message ?? 'The run ended before any tool ran long enough to be interrupted.');
  }
  await first.kill();
  tell(`kill -9 of the worker, in the middle of ${toolNameOf(struck)}. Nobody carries out the run now.`);

  await session.steer('Focus on the tests: add a section about them.');
  tell('A steering message is sent meanwhile. It waits in the workflow.');

  const resumed = live.next((event) => event.type === 'tool_execution_end' || event.type === 'turn_start');
  const second = stage.startWorker();
  tell(`A new worker: ${await unlessStopped(second.ready())}`);
  tell(describeResumption(await unlessStopped(resumed)));

  const settled = live.next((event) => event.type === 'settled');
  await session.followUp('What are the three largest files?');
  await unlessStopped(settled);
  await unlessStopped(session.waitForIdle());

  const status = await session.status();
  if (status.lastRun !== undefined && status.lastRun.status !== 'done') {
    throw new Error(`The run ended as ${status.lastRun.status}.`);
  }
  printReport(stage.output);
  console.log([ink.bold('What was durable'), '', ...durabilityTable(await session.stats())].join('\n'));
}

/**
 * The second sign of life of one running bash command, at least 200 ms after the first: it is in the middle of its work.
 * A run that has no such command is interrupted when it writes its report.
 */
function momentToKill(): (event: SessionEvent) => boolean {
  const updated = new Set<string>();
  return (event) => {
    if (event.type === 'agent_end') return true;
    if (event.type === 'tool_execution_start') return event.toolName === 'write';
    if (event.type !== 'tool_execution_update' || event.toolName !== 'bash') return false;
    if (updated.has(event.toolCallId)) return true;
    updated.add(event.toolCallId);
    return false;
  };
}

function toolNameOf(event: SessionEvent): string {
  return 'toolName' in event ? event.toolName : 'a tool';
}

function describeResumption(event: SessionEvent): string {
  if (event.type !== 'tool_execution_end')
    return 'The tool had just ended when the worker died. The run goes on after it.';
  if (event.outcome === 'unknown') {
    return `The run goes on. ${event.toolName} was not started a second time: the model is told that its outcome is unknown.`;
  }
  return `The run goes on. ${event.toolName} may be repeated, so it ran again.`;
}

function printReport(output: string): void {
  const file = join(output, 'report.md');
  if (!existsSync(file)) throw new Error('The run ended without a report.');
  console.log(`\n${ink.bold('The report')}\n\n${readFileSync(file, 'utf8').replace(/^(?=.)/gm, '  ')}`);
}

async function main(): Promise<number> {
  const stop = new AbortController();
  const interrupt = (signal: NodeJS.Signals) => stop.abort(new Error(`Stopped by ${signal}.`));
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  // The reader of a pipe has gone away: there is nobody to show anything to.
  process.stdout.once('error', () => stop.abort(new Error('Nobody reads the output.')));
  const timer = setTimeout(
    () => stop.abort(new Error(`It took longer than ${timeLimitMs / 60_000} minutes.`)),
    timeLimitMs,
  );
  const stage = new Stage(resolve(process.env.SURVEYOR_WORKSPACE || repository));
  let code = 0;
  const fail = (error: unknown) => {
    code = 1;
    console.error(`\nThe demo failed: ${(error as Error).message}`);
  };
  await play(stage, stop.signal).catch(fail);
  await stage.end().catch(fail);
  clearTimeout(timer);
  return code;
}

process.exitCode = await main();

import type { Command } from 'commander';
import type { AgentClient, SessionHandle } from '../../client/index.ts';
import { EverturnError } from '../../common/errors.ts';
import type { QueuedMessage } from '../../common/events.ts';
import { textOf } from '../../common/messages.ts';
import { oneLine } from '../ink.ts';
import { Output } from '../output.ts';
import { knownSession, withClient } from '../session-client.ts';
import { parseId, type SessionFlags, withTemporalFlags, withWaitFlag } from '../settings.ts';

interface AbortFlags extends SessionFlags {
  run?: string;
  wait: number;
}

export function addAbortCommand(program: Command): void {
  withWaitFlag(
    withTemporalFlags(program.command('abort').description('abort the run that is going on, and wait for its end')),
  )
    .argument('<session>', 'its id', parseId('session'))
    .option('--run <id>', 'abort this run, and no other (default: the one that is going on)', parseId('run'))
    .action(abort);
}

/** Asking for it is durable at once; then it waits for the end, which is a worker's to write. */
async function abort(sessionId: string, flags: AbortFlags): Promise<void> {
  const out = new Output(flags.json);
  await withClient(flags, async (client) => {
    const { row, session } = await knownSession(client, sessionId);
    const runId = flags.run ?? row.openRunId ?? (await session.status()).runId;
    const known = runId === undefined ? undefined : await client.store.readRun(sessionId, runId);
    if (runId === undefined || (known !== undefined && known.status !== 'open')) {
      const status = known?.status ?? null;
      out.object({ sessionId, runId: runId ?? null, status, clearedSteer: [], clearedFollowUp: [] });
      out.line(runId === undefined ? 'no run is going on' : `run ${runId} has ended before: ${status}`);
      return;
    }
    if (known === undefined) await requireRunning(session, runId);
    const { clearedSteer, clearedFollowUp } = await withinTime(session, runId, flags);
    const status = await statusOf(client, sessionId, runId);
    out.object({ sessionId, runId, status, clearedSteer, clearedFollowUp });
    out.line(`run ${runId}: ${status}`);
    for (const { message } of [...clearedSteer, ...clearedFollowUp])
      out.line(`not delivered: “${oneLine(textOf(message), 100)}”`);
  });
}

/** A run that was accepted a moment ago may not stand in the store yet; its workflow knows it. */
async function requireRunning(session: SessionHandle, runId: string): Promise<void> {
  if ((await session.status()).runId === runId) return;
  throw new EverturnError('not_found', `Session "${session.sessionId}" has no run "${runId}".`, {
    details: { sessionId: session.sessionId, runId },
  });
}

async function withinTime(
  session: SessionHandle,
  runId: string,
  { wait }: AbortFlags,
): Promise<{ clearedSteer: QueuedMessage[]; clearedFollowUp: QueuedMessage[] }> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const message = `The abort of run ${runId} is noted, but no worker has ended the run within ${wait} s. Start one ("everturn worker"): it ends the run first.`;
    late.reject(
      new EverturnError('no_worker', message, { retryable: true, details: { sessionId: session.sessionId, runId } }),
    );
  }, wait * 1_000);
  try {
    return await Promise.race([session.abort(runId), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** A run may come to its own end before the abort reaches it. */
async function statusOf(client: AgentClient, sessionId: string, runId: string): Promise<string> {
  return (await client.store.readRun(sessionId, runId))?.status ?? 'aborted';
}

import type { Command } from 'commander';
import type { SessionRow } from '../../store/types.ts';
import { exitCodes } from '../failure.ts';
import { Output } from '../output.ts';
import { requireSession, withStore } from '../session-client.ts';
import { parseCount, parseId, type StoreFlags, shownStore, storePath, withStoreFlags } from '../settings.ts';
import { usageText } from '../transcript/lines.ts';

export function addSessionsCommand(program: Command): void {
  withStoreFlags(program.command('sessions').description('list the sessions, the last used first'))
    .option('--limit <number>', 'how many at most', parseCount, 100)
    .action(sessions);
}

export function addVerifyCommand(program: Command): void {
  withStoreFlags(program.command('verify').description("check a session's log against its hash chain"))
    .argument('<session>', 'its id', parseId('session'))
    .action(verify);
}

async function sessions(flags: StoreFlags & { limit: number }): Promise<void> {
  const out = new Output(flags.json);
  const rows = await withStore(flags, (store) => store.listSessions({ limit: flags.limit }));
  if (rows.length === 0) out.line(`no sessions in ${shownStore(storePath(flags))}`);
  else out.text(table([['session', 'agent', 'state', 'runs', 'last used', 'usage', 'model'], ...rows.map(cells)]));
  for (const row of rows) out.object(row);
}

function cells(row: SessionRow): string[] {
  const { sessionId, agent, openRunId, runs, updatedAt, usage, model } = row;
  // Sweden writes dates as ISO 8601 does, in local time.
  const lastUsed = new Date(updatedAt).toLocaleString('sv-SE');
  return [
    sessionId,
    agent,
    openRunId === undefined ? 'idle' : 'running',
    String(runs),
    lastUsed,
    usageText(usage),
    model,
  ];
}

function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** A log that was changed is a finding, not an error of the command: it is told on stdout, with exit code 1. */
async function verify(sessionId: string, flags: StoreFlags): Promise<void> {
  const out = new Output(flags.json);
  await withStore(flags, async (store) => {
    const { headHash } = await requireSession(store, sessionId);
    const found = await store.verify(sessionId);
    out.object({ sessionId, ...found });
    if (found.ok) {
      out.line(`${sessionId}: ${found.length} records, all as they were written; head ${headHash}`);
    } else {
      out.line(out.ink.red(`${sessionId}: not as it was written from offset ${found.offset} on: ${found.reason}`));
      process.exitCode = exitCodes.failed;
    }
  });
}

import type { Command } from 'commander';
import { readEvents } from '../../client/events.ts';
import { EventWriter } from '../event-writer.ts';
import { Output } from '../output.ts';
import { requireSession, withStore } from '../session-client.ts';
import { parseCount, parseId, type StoreFlags, withStoreFlags } from '../settings.ts';
import { onEndSignals } from '../signals.ts';

interface ShowFlags extends StoreFlags {
  follow?: boolean;
  from?: number;
}

export function addShowCommand(program: Command): void {
  withStoreFlags(program.command('show').description('show the transcript of a session'))
    .argument('<session>', 'its id', parseId('session'))
    .option('--follow', 'go on with what comes, until Ctrl-C')
    .option('--from <offset>', 'begin at this offset of the log (default: 0)', parseCount)
    .action(show);
}

/** Reads the store alone: it works without a server, and while others write. */
async function show(sessionId: string, flags: ShowFlags): Promise<void> {
  const out = new Output(flags.json);
  await withStore(flags, async (store) => {
    const { agent, model } = await requireSession(store, sessionId);
    const { follow = false, from = 0 } = flags;
    const stop = new AbortController();
    const release = onEndSignals(() => stop.abort());
    const writer = new EventWriter(out);
    writer.line(out.ink.dim(`session ${sessionId}, agent ${agent}, model ${model}`));
    for await (const event of readEvents(store, sessionId, { follow, from, signal: stop.signal })) writer.write(event);
    release();
    const open = (await store.readSession(sessionId))?.openRunId;
    writer.end();
    if (open !== undefined)
      writer.line(out.ink.dim(`run ${open} is going on${follow ? '' : '; --follow shows it as it goes'}`));
  });
}

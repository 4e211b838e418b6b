import type { Command } from 'commander';
import { invalidArgument } from '../failure.ts';
import { Output } from '../output.ts';
import { knownSession, withClient } from '../session-client.ts';
import { parseId, type SessionFlags, withTemporalFlags } from '../settings.ts';

/** The messages that need no worker's answer: they are durable when the command returns, whether a worker is up or not. */
export function addSteerCommands(program: Command): void {
  add(program, 'steer', 'steer', 'send a message into the run that is going on, after its current turn');
  add(program, 'follow-up', 'followUp', 'queue a message for when the run would stop');
}

function add(program: Command, name: string, queue: 'steer' | 'followUp', description: string): void {
  withTemporalFlags(program.command(name).description(`${description}; an idle session begins a run with it`))
    .argument('<session>', 'its id', parseId('session'))
    .argument('<text>', 'the message')
    .action((sessionId: string, text: string, flags: SessionFlags) => send(queue, sessionId, text, flags));
}

async function send(queue: 'steer' | 'followUp', sessionId: string, text: string, flags: SessionFlags): Promise<void> {
  const out = new Output(flags.json);
  if (text.trim() === '') throw invalidArgument('The message is empty.');
  await withClient(flags, async (client) => {
    const { row, session } = await knownSession(client, sessionId);
    await session[queue](text);
    out.object({ sessionId, queue, runId: row.openRunId ?? null });
    const into = row.openRunId === undefined ? 'the session was idle, so it begins a run' : `for run ${row.openRunId}`;
    out.line(`${queue === 'steer' ? 'steering' : 'follow-up'} sent: ${into}`);
  });
}

import { uuidv7 } from '@earendil-works/pi-ai';
import { type Command, Option } from 'commander';
import type { AgentClient, SessionHandle } from '../../client/index.ts';
import { EverturnError, isEverturnError } from '../../common/errors.ts';
import { modelRefSchema, type OnBusy, onBusyChoices } from '../../common/signals.ts';
import type { SessionRow } from '../../store/types.ts';
import { exitCodes, invalidArgument } from '../failure.ts';
import { Output } from '../output.ts';
import { withClient } from '../session-client.ts';
import { parseId, type SessionFlags, shownStore, storePath, withTemporalFlags, withWaitFlag } from '../settings.ts';
import { AttachedRun } from './attached-run.ts';
import { followRun } from './follow-run.ts';
import { readImage } from './images.ts';

interface RunFlags extends SessionFlags {
  agent?: string;
  session?: string;
  runId?: string;
  model?: string;
  image?: string[];
  onBusy?: OnBusy;
  detach?: boolean;
}

export function addRunCommand(program: Command): void {
  const command = program
    .command('run')
    .description('send a prompt and show the run as it goes')
    .argument('<prompt>', 'what the agent is to do');
  withWaitFlag(withTemporalFlags(command))
    .option('--agent <name>', 'the agent of a new session')
    .option('--session <id>', 'a session to go on with, or the id of the new one (default: made)', parseId('session'))
    .option('--model <provider/id>', "the session's model from now on", parseModel)
    .option('--image <file>', 'an image that goes with the prompt; may be repeated', (file, files: string[] = []) => [
      ...files,
      file,
    ])
    .addOption(
      new Option('--on-busy <what>', 'what to do while a run is going on (default: reject)').choices(onBusyChoices),
    )
    .option(
      '--run-id <id>',
      'makes the prompt safe to repeat: the same id gives the same run (default: made)',
      parseId('run'),
    )
    .option('--detach', 'open the run, print its ids and leave')
    .action(async (prompt: string, flags: RunFlags) => {
      process.exitCode = await run(prompt, flags);
    });
}

function parseModel(value: string): string {
  if (modelRefSchema.safeParse(value).success) return value;
  throw invalidArgument(`"${value}" is no model: write provider/model-id.`);
}

async function run(prompt: string, flags: RunFlags): Promise<number> {
  const images = (flags.image ?? []).map(readImage);
  if (prompt.trim() === '') throw invalidArgument('The prompt is empty.');
  return withClient(flags, async (client) => {
    const row = flags.session === undefined ? undefined : await client.store.readSession(flags.session);
    const from = row?.length ?? 0;
    const session = await sessionFor(client, row, flags);
    const runId = flags.runId ?? uuidv7();
    const attached = new AttachedRun(session, runId, new Output(flags.json));
    try {
      const sent = session.prompt(prompt, {
        images,
        runId,
        ...(flags.onBusy === undefined ? {} : { onBusy: flags.onBusy }),
      });
      const answer = await attached.orLeft(
        sent.catch((error: unknown) => Promise.reject(withIds(error, session.sessionId, runId))),
      );
      if (answer === undefined) return attached.leave();
      await requireSameStore(client, session.sessionId, flags);
      attached.opened(answer, flags.detach ?? false);
      if (flags.detach) return exitCodes.ok;
      const first = (await client.store.readRun(session.sessionId, answer.runId))?.firstOffset ?? from;
      // A prompt that was sent before shows its run from the beginning; one that joins a run shows what comes now.
      const place = {
        runId: answer.runId,
        from: answer.became === 'opened' ? Math.min(from, first) : from,
        signal: attached.left,
      };
      const end = await followRun(client.store, session, place, (event) => attached.writer.write(event));
      return end === undefined ? attached.leave() : attached.ended(end);
    } finally {
      attached.release();
    }
  });
}

/** A new session, or a known one, which keeps its agent. */
async function sessionFor(client: AgentClient, row: SessionRow | undefined, flags: RunFlags): Promise<SessionHandle> {
  const { model } = flags;
  if (row === undefined) {
    if (flags.agent === undefined)
      throw invalidArgument(
        'A new session needs an agent: name it with --agent, or a session that is there with --session.',
      );
    const id = flags.session ?? `${flags.agent}-${uuidv7().slice(-12)}`;
    return client.session(id, { agent: flags.agent, ...(model === undefined ? {} : { model }) });
  }
  if (flags.agent !== undefined && flags.agent !== row.agent) {
    throw invalidArgument(
      `Session "${row.sessionId}" belongs to the agent "${row.agent}", not "${flags.agent}". Leave --agent out, or begin a new session.`,
    );
  }
  const session = client.session(row.sessionId, { agent: row.agent });
  if (model !== undefined && model !== row.model) {
    // A prompt that is to be refused must not change anything.
    if ((flags.onBusy ?? 'reject') === 'reject' && (await session.status()).phase !== 'idle') {
      throw new EverturnError(
        'busy',
        `Session "${row.sessionId}" is busy. Wait for it, or say what to do with --on-busy steer, followUp or interrupt.`,
      );
    }
    await session.setModel(model);
  }
  return session;
}

/** The ids make it possible to send the prompt again without a second run. */
function withIds(error: unknown, sessionId: string, runId: string): unknown {
  if (!isEverturnError(error, 'no_worker')) return error;
  const message = `${error.message} Its ids: --session ${sessionId} --run-id ${runId}`;
  return new EverturnError('no_worker', message, { retryable: true, cause: error, details: { sessionId, runId } });
}

/** The session was opened before the prompt was answered, so it stands in the worker's store. */
async function requireSameStore(client: AgentClient, sessionId: string, flags: RunFlags): Promise<void> {
  if ((await client.store.readSession(sessionId)) !== undefined) return;
  throw new EverturnError(
    'invalid_config',
    `The run goes on, but the workers keep session "${sessionId}" in another store than ${shownStore(storePath(flags))}. Name theirs with --store or EVERTURN_STORE.`,
    { details: { sessionId } },
  );
}

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentClient, SessionHandle } from 'everturn/client';
import { type ProviderReply, startProviderServer } from 'everturn/testing';
import { writeWorkflowBundle } from 'everturn/worker';
import { type Figures, newQueue, type Queue, withClient, withServer } from './lib.ts';
import { type BenchProcess, startProcess } from './processes.ts';
import type { WorkerConfig } from './worker-main.ts';

const workerProgram = new URL('./worker-main.ts', import.meta.url);
/** Sessions at each place. They begin apart, since what counts is how long before the kill the last heartbeat was. */
const sessionsPerPlace = 4;
const apartMs = 250;
const aborts = 5;

/** Places where a worker is killed: the agent and prompt that lead there, and the note that says that it is there. */
const places = [
  { place: 'model', agent: 'bench', prompt: 'stream' },
  { place: 'tool', agent: 'waiting', prompt: 'call' },
  { place: 'gate', agent: 'gated', prompt: 'call' },
] as const;

/**
 * How soon things go on after `kill -9` of a worker, and how soon an abort reaches the provider: real processes, the
 * product's own settings, and of each figure the worst of some sessions.
 */
export async function recovery(): Promise<Figures> {
  return withServer({}, async (place) => {
    const provider = await startProviderServer({ reply: endlessReply });
    try {
      const queue = newQueue(place);
      const workflowBundle = await writeWorkflowBundle(join(place.folder, 'workflows.cjs'));
      const baseUrl = provider.baseUrl('openai-completions');
      const start = (holds: boolean) =>
        startProcess(workerProgram, { ...queue, workflowBundle, holds, provider: baseUrl } satisfies WorkerConfig);
      return await withClient(queue, async (client) => {
        const killed = await start(true);
        const { idle, stuck } = await fill(client, queue, killed);
        const other = await start(false);
        await warmUp(client, queue, other);
        const killedAt = await killed.kill9();
        const signalled = Promise.all(idle.map((session) => session.steer('1 turn, please.')));
        const handled = await latest(idle.map((session) => other.noted('model', session.sessionId)));
        await signalled;
        const back = (name: string) =>
          latest(stuck.filter((each) => each.place === name).map((each) => other.noted(name, each.session.sessionId)));
        const figures = {
          killToRetryMs: Math.max(await back('model'), await back('tool')) - killedAt,
          killInGateMs: (await back('gate')) - killedAt,
          killToSignalHandledMs: handled - killedAt,
        };
        await Promise.all(stuck.map(({ session, runId }) => expectDone(session, runId)));
        const abortToProviderMs = await abortOften(client, queue, provider);
        await other.stop();
        return { ...figures, abortToProviderMs };
      });
    } finally {
      await provider.close();
    }
  });
}

/** Brings the sessions of a worker to where it is to be killed. */
async function fill(client: AgentClient, { taskQueue }: Queue, worker: BenchProcess) {
  const named = (name: string, index: number, agent: string) =>
    client.session(`${taskQueue}-${name}-${index}`, { agent });
  const idle: SessionHandle[] = [];
  const stuck: { place: string; session: SessionHandle; runId: string }[] = [];
  for (let index = 0; index < sessionsPerPlace; index++) {
    const session = named('idle', index, 'bench');
    await session.run('1 turn, please.');
    idle.push(session);
  }
  for (let index = 0; index < sessionsPerPlace; index++) {
    for (const { place, agent, prompt } of places) {
      const session = named(place, index, agent);
      const { runId } = await session.prompt(prompt);
      stuck.push({ place, session, runId });
    }
    await delay(apartMs);
  }
  for (const { place, session } of stuck) await worker.noted(place, session.sessionId);
  return { idle, stuck };
}

/** The two share a task queue: sessions are opened until the new one has had some. */
async function warmUp(client: AgentClient, { taskQueue }: Queue, worker: BenchProcess): Promise<void> {
  for (let index = 0, seen = 0; seen < 3 && index < 30; index++) {
    const sessionId = `${taskQueue}-warm-${index}`;
    await client.session(sessionId, { agent: 'bench' }).run('1 turn, please.');
    if (worker.has('model', sessionId)) seen += 1;
  }
}

async function latest(notes: Promise<{ at: number }>[]): Promise<number> {
  return Math.max(...(await Promise.all(notes)).map(({ at }) => at));
}

async function expectDone(session: SessionHandle, runId: string): Promise<void> {
  const { status } = await session.result(runId);
  if (status !== 'done') throw new Error(`run ${runId} of ${session.sessionId} ended as ${status}`);
}

/** From the call of `abort()` here, in a process without a worker, to the end of the provider's connection. */
async function abortOften(
  client: AgentClient,
  { taskQueue }: Queue,
  provider: Awaited<ReturnType<typeof startProviderServer>>,
): Promise<number> {
  const delays: number[] = [];
  for (let index = 0; index < aborts; index++) {
    const session = client.session(`${taskQueue}-abort-${index}`, { agent: 'remote' });
    await session.prompt('Talk, please.');
    const request = await provider.request(index);
    await delay(500);
    const at = Date.now();
    await session.abort();
    await request.ended;
    delays.push((request.clientClosedAt ?? Number.NaN) - at);
  }
  return Math.max(...delays);
}

function endlessReply(): ProviderReply {
  return { content: [{ type: 'text', chunks: Array.from({ length: 10_000 }, (_, n) => `${n} `) }], delayMs: 20 };
}

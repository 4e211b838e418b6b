import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentClient } from 'everturn/client';
import { writeWorkflowBundle } from 'everturn/worker';
import { type Figures, newQueue, percentile, round, withClient, withServer } from './lib.ts';
import { diskBytes, watchMemory } from './machine.ts';
import { promptFor } from './model.ts';
import { startProcess } from './processes.ts';
import type { WorkerConfig } from './worker-main.ts';

const workerProgram = new URL('./worker-main.ts', import.meta.url);
const modelMs = 2_000;
/** Prompts in flight: people do not all press return at the same moment. */
const promptsAtOnce = 50;
const runId = 'run';
const temporalFile = 'temporal.db';

/**
 * So many sessions at work at the same time on one worker and one server that keeps its data in a file, with a model that
 * takes 2 s. Overhead of a turn: the time to the next one, less the model's.
 */
export async function scale(options: { sessions: number; turns: number }): Promise<Figures> {
  const turns = options.sessions * options.turns;
  let disk = 0;
  const figures = await withServer(
    {
      dbFile: temporalFile,
      atEnd: async (folder) => {
        disk += await diskBytes(folder, temporalFile);
      },
    },
    async (place) => {
      const queue = newQueue(place);
      await mkdir(queue.store, { recursive: true });
      const workflowBundle = await writeWorkflowBundle(join(place.folder, 'workflows.cjs'));
      const worker = await startProcess(workerProgram, { ...queue, workflowBundle, modelMs } satisfies WorkerConfig);
      disk -= await diskBytes(place.folder, temporalFile);
      const memory = watchMemory([worker.pid, place.server.pid]);
      const measured = await withClient(queue, async (client) => {
        const sessionIds = Array.from({ length: options.sessions }, (_, index) => `${queue.taskQueue}-${index}`);
        const started = performance.now();
        await promptAll(client, sessionIds, options.turns);
        await untilDone(client, sessionIds);
        const seconds = (performance.now() - started) / 1_000;
        const overheads: number[] = [];
        let retriedEffects = 0;
        for (const sessionId of sessionIds) {
          overheads.push(...(await readOverheads(client, sessionId)));
          const { attempts, effects } = await client.store.countEffects(sessionId);
          retriedEffects += attempts - effects;
        }
        return { turnsPerSecond: turns / seconds, overheads, retriedEffects };
      });
      const [workerMb = 0, serverMb = 0] = memory();
      await worker.stop();
      disk += await diskBytes(queue.store);
      return {
        sessions: options.sessions,
        turnsPerSecond: round(measured.turnsPerSecond),
        overheadP50Ms: percentile(measured.overheads, 0.5),
        overheadP99Ms: percentile(measured.overheads, 0.99),
        retriedEffects: measured.retriedEffects,
        workerRssMb: workerMb,
        serverRssMb: serverMb,
      };
    },
  );
  return { ...figures, diskBytesPerTurn: Math.round(disk / turns) };
}

async function promptAll(client: AgentClient, sessionIds: readonly string[], turns: number): Promise<void> {
  const waiting = [...sessionIds];
  const lane = async () => {
    for (let sessionId = waiting.shift(); sessionId !== undefined; sessionId = waiting.shift())
      await client.session(sessionId, { agent: 'bench' }).prompt(promptFor(turns), { runId });
  };
  // All have ended before the first trouble is told: the client is closed after that.
  const lanes = await Promise.allSettled(Array.from({ length: promptsAtOnce }, lane));
  for (const ended of lanes) if (ended.status === 'rejected') throw ended.reason;
}

/** One reader for all: a client of its own for each session would be what is measured. */
async function untilDone(client: AgentClient, sessionIds: readonly string[]): Promise<void> {
  for (let open = [...sessionIds]; open.length > 0; await delay(200)) {
    const ended = await client.store.readEndedRuns(open.map((sessionId) => ({ sessionId, runId })));
    const broken = ended.find(({ status }) => status !== 'done');
    if (broken !== undefined) throw new Error(`the run of ${broken.sessionId} ended as ${broken.status}`);
    const done = new Set(ended.map(({ sessionId }) => sessionId));
    open = open.filter((sessionId) => !done.has(sessionId));
  }
}

/** Milliseconds of each turn but for the model's, from its start to the start of the next, or to the run's end. */
async function readOverheads(client: AgentClient, sessionId: string): Promise<number[]> {
  const borders = (await client.store.readLog(sessionId, 0, 1_000_000)).filter(
    ({ body }) => body.kind === 'event' && (body.event.type === 'turn_start' || body.event.type === 'agent_end'),
  );
  return borders.slice(1).map(({ at }, index) => at - (borders[index]?.at ?? at) - modelMs);
}

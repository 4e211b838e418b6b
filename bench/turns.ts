import type { AgentClient } from 'everturn/client';
import { echoAgent } from './agents.ts';
import { runBare } from './bare.ts';
import { bundleFloor, withFloor } from './floor/run-floor.ts';
import { bytesIn, fullTurns, readHistory } from './history.ts';
import { type Figures, mean, newQueue, percentile, round, withServer, withWorker } from './lib.ts';
import { promptFor } from './model.ts';

export interface TurnsOptions {
  sessions: number;
  turns: number;
  /** The tool runs as a local activity. */
  local: boolean;
}

/** A worker runs for weeks: both sides have done so many turns before anything is measured. */
const warmTurns = 100;
const rounds = 5;

/**
 * Turns a second beside the floor, which is a hand-written workflow on the same server, and beside bare pi: all in one run.
 * Floor and ours take turns, each on a worker that stays: the speed of a machine and of a server changes from one
 * minute to the next.
 */
export async function turns(options: TurnsOptions): Promise<Figures> {
  return withServer({}, async (place) => {
    const queue = newQueue(place);
    const agent = echoAgent('bench', { local: options.local });
    return withFloor(place.server.address, await bundleFloor(), (floor) =>
      withWorker(queue, { agents: [agent] }, async (client) => {
        // Ids are the server's, for all queues: the task queue's name keeps them apart.
        const ours = (name: string, size: Size) => runOurs(client, `${queue.taskQueue}-${name}`, size);
        const warm = { sessions: 1, turns: warmTurns };
        await floor(warm);
        await ours('warm', warm);
        const floors = [await floor(options)];
        const runs: OurRun[] = [];
        for (let round = 0; round < rounds; round++) {
          runs.push(await ours(String(round), options));
          floors.push(await floor(options));
        }
        const turnsPerSecond = mean(runs.map((run) => run.turnsPerSecond));
        const floorTurnsPerSecond = mean(floors);
        const steps = await Promise.all(
          runs.flatMap(({ sessions }) => sessions.map(({ sessionId }) => readSteps(client, sessionId))),
        );
        const turns = await Promise.all(
          runs.map(async ({ sessions: [first] }) => {
            const { sessionId = '', runId = '' } = first ?? {};
            return fullTurns(await readHistory(place.server.address, sessionId), runId);
          }),
        );
        return {
          turnsPerSecond: round(turnsPerSecond),
          floorTurnsPerSecond: round(floorTurnsPerSecond),
          bareTurnsPerSecond: round(await runBare(options)),
          ratioToFloor: round(turnsPerSecond / floorTurnsPerSecond, 2),
          // What opens and ends the session, once, is not a turn's.
          historyBytesPerTurn: Math.round(mean(turns.flat().map(bytesIn))),
          historyEventsPerTurn: round(mean(turns.flat().map((events) => events.length))),
          stepP50Ms: round(percentile(steps.flat(), 0.5)),
          stepP99Ms: round(percentile(steps.flat(), 0.99)),
        };
      }),
    );
  });
}

interface Size {
  sessions: number;
  turns: number;
}

interface OurRun {
  turnsPerSecond: number;
  sessions: { sessionId: string; runId: string }[];
}

async function runOurs(client: AgentClient, name: string, { sessions, turns }: Size): Promise<OurRun> {
  const handles = Array.from({ length: sessions }, (_, index) =>
    client.session(`${name}-${index}`, { agent: 'bench' }),
  );
  const started = performance.now();
  const results = await Promise.all(handles.map((each) => each.run(promptFor(turns))));
  const seconds = (performance.now() - started) / 1_000;
  const failed = results.find((result) => result.status !== 'done' || result.turns !== turns);
  if (failed !== undefined) throw new Error(`a run ended as ${failed.status} after ${failed.turns} turns`);
  return {
    turnsPerSecond: (sessions * turns) / seconds,
    sessions: results.map(({ runId }, index) => ({ sessionId: handles[index]?.sessionId ?? '', runId })),
  };
}

/** Milliseconds from the start of each turn to the start of the next, by the log. */
async function readSteps(client: AgentClient, sessionId: string): Promise<number[]> {
  const starts = (await client.store.readLog(sessionId, 0, 1_000_000)).filter(
    ({ body }) => body.kind === 'event' && body.event.type === 'turn_start',
  );
  return starts.slice(1).map(({ at }, index) => at - (starts[index]?.at ?? at));
}

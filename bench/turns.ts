import type { AgentClient } from 'everturn/client';
import { echoAgent } from './agents.ts';
import { runBare } from './bare.ts';
import { bundleFloor, runFloor } from './floor/run-floor.ts';
import { bytesIn, fullTurns, readHistory } from './history.ts';
import { type Figures, mean, newQueue, type Place, percentile, round, withServer, withWorker } from './lib.ts';
import { promptFor } from './model.ts';

export interface TurnsOptions {
  sessions: number;
  turns: number;
  /** The tool runs as a local activity. */
  local: boolean;
}

/**
 * Turns a second beside the floor, which is a hand-written workflow on the same server, and beside bare pi: all in one run.
 * The floor is run before and after, since a server's speed changes while it fills up and a process's while it warms up.
 */
export async function turns(options: TurnsOptions): Promise<Figures> {
  return withServer({}, async (place) => {
    const bundle = await bundleFloor();
    const floor = () => runFloor(place.server.address, bundle, options);
    const before = await floor();
    const ours = await runOurs(place, options);
    const after = await floor();
    const floorTurnsPerSecond = mean([before, after]);
    return {
      turnsPerSecond: round(ours.turnsPerSecond),
      floorTurnsPerSecond: round(floorTurnsPerSecond),
      bareTurnsPerSecond: round(await runBare(options)),
      ratioToFloor: round(ours.turnsPerSecond / floorTurnsPerSecond, 2),
      historyBytesPerTurn: Math.round(ours.historyBytesPerTurn),
      historyEventsPerTurn: round(ours.historyEventsPerTurn),
      stepP50Ms: round(percentile(ours.steps, 0.5)),
      stepP99Ms: round(percentile(ours.steps, 0.99)),
    };
  });
}

async function runOurs(place: Place, options: TurnsOptions) {
  const queue = newQueue(place);
  const agent = echoAgent('bench', { local: options.local });
  return withWorker(queue, { agents: [agent] }, async (client) => {
    // Ids are the server's, for all queues: the task queue's name keeps them apart.
    const session = (name: string) => client.session(`${queue.taskQueue}-${name}`, { agent: 'bench' });
    await session('warm').run(promptFor(5));
    const sessions = Array.from({ length: options.sessions }, (_, index) => session(String(index)));
    const started = performance.now();
    const results = await Promise.all(sessions.map((each) => each.run(promptFor(options.turns))));
    const seconds = (performance.now() - started) / 1_000;
    for (const { status, turns } of results) {
      if (status !== 'done' || turns !== options.turns)
        throw new Error(`a run ended as ${status} after ${turns} turns`);
    }
    const steps = await Promise.all(sessions.map((each) => readSteps(client, each.sessionId)));
    const history = fullTurns(await readHistory(place.server.address, `${queue.taskQueue}-0`), results[0]?.runId ?? '');
    return {
      turnsPerSecond: (options.sessions * options.turns) / seconds,
      steps: steps.flat(),
      // What opens and ends the session, once, is not a turn's.
      historyBytesPerTurn: mean(history.map(bytesIn)),
      historyEventsPerTurn: mean(history.map((events) => events.length)),
    };
  });
}

/** Milliseconds from the start of each turn to the start of the next, by the log. */
async function readSteps(client: AgentClient, sessionId: string): Promise<number[]> {
  const starts = (await client.store.readLog(sessionId, 0, 1_000_000)).filter(
    ({ body }) => body.kind === 'event' && body.event.type === 'turn_start',
  );
  return starts.slice(1).map(({ at }, index) => at - (starts[index]?.at ?? at));
}

import { fileURLToPath } from 'node:url';
import type { AgentClient } from 'everturn/client';
import { bytesIn, fullTurns, readHistory } from './history.ts';
import { hookAgents } from './hooks/agents.ts';
import { type Figures, mean, median, newQueue, round, withServer, withWorker } from './lib.ts';
import { promptFor } from './model.ts';

const workflowsPath = fileURLToPath(new URL('./hooks/workflows.ts', import.meta.url));
/** Each agent has so many runs, in turns with the others: a machine that is busy for a while slows all of them. */
const rounds = 3;

interface Sample {
  ms: number[];
  bytes: number[];
  events: number[];
}

/** What hooks cost a turn: none, each one alone, all at once, in one run on one worker. */
export async function hooks(options: { turns: number }): Promise<Figures> {
  return withServer({}, async (place) => {
    const queue = newQueue(place);
    const agents = hookAgents();
    return withWorker(queue, { agents, workflowsPath }, async (client) => {
      const samples = new Map(agents.map(({ name }) => [name, { ms: [], bytes: [], events: [] } as Sample]));
      const measure = (agent: string, session: string, turns: number) =>
        measureRun(client, queue.address, { agent, sessionId: `${queue.taskQueue}-${agent}-${session}`, turns });
      for (const agent of ['none', 'all']) await measure(agent, 'warm', 10);
      for (let round = 0; round < rounds; round++) {
        for (const { name } of agents) {
          const { ms, bytes, events } = await measure(name, String(round), options.turns);
          samples.get(name)?.ms.push(...ms);
          samples.get(name)?.bytes.push(...bytes);
          samples.get(name)?.events.push(...events);
        }
      }
      const without = median(samples.get('none')?.ms ?? []);
      const each = [...samples].map(([hook, { ms, bytes, events }]) => ({
        hook,
        timeRatio: round(median(ms) / without, 2),
        historyBytesPerTurn: Math.round(mean(bytes)),
        eventsPerTurn: round(mean(events)),
      }));
      const all = each.find(({ hook }) => hook === 'all');
      return {
        timeRatioAll: all?.timeRatio ?? Number.NaN,
        historyBytesPerTurnAll: all?.historyBytesPerTurn ?? Number.NaN,
        eventsPerTurnAll: all?.eventsPerTurn ?? Number.NaN,
        each,
      };
    });
  });
}

async function measureRun(
  client: AgentClient,
  address: string,
  { agent, sessionId, turns }: { agent: string; sessionId: string; turns: number },
): Promise<Sample> {
  const { runId, status } = await client.session(sessionId, { agent }).run(promptFor(turns));
  if (status !== 'done') throw new Error(`the run of agent ${agent} ended as ${status}`);
  const full = fullTurns(await readHistory(address, sessionId), runId);
  // The first turn carries the prompt, and what there is before it.
  const later = full.slice(1);
  const starts = later.map(([first]) => first?.at ?? Number.NaN);
  return {
    ms: starts.slice(1).map((start, index) => start - (starts[index] ?? Number.NaN)),
    bytes: later.map(bytesIn),
    events: later.map((events) => events.length),
  };
}

import type { SessionHandle } from 'everturn/client';
import { echoAgent } from './agents.ts';
import { bytesIn, fullTurns, readHistory, type WeighedEvent } from './history.ts';
import { type Figures, mean, median, newQueue, round, withServer, withWorker } from './lib.ts';
import { instantModel, instantReply, type ModelReply, type ModelRequest, promptFor } from './model.ts';

/** A conversation becomes long by many messages, not by one. */
const messageKb = 100;
/** Turns on either side that are looked at. */
const windowTurns = 10;

/**
 * What a turn costs early and late in a conversation: the same, or the history would grow with turns times conversation.
 * `contextKb`: what was said in earlier runs of the session.
 */
export async function context(options: { turns: number; contextKb: number }): Promise<Figures> {
  return withServer({}, async (place) => {
    const queue = newQueue(place);
    let inputBytes = 0;
    const reply = (request: ModelRequest): ModelReply => {
      const answer = instantReply(request);
      if (answer.call === undefined) inputBytes = Buffer.byteLength(JSON.stringify(request.messages));
      return answer;
    };
    const worker = { agents: [echoAgent('bench')], providers: [instantModel(reply)] };
    return withWorker(queue, worker, async (client) => {
      const session = client.session(`${queue.taskQueue}-long`, { agent: 'bench' });
      await saySomething(session, options.contextKb);
      const { runId, status, turns } = await session.run(promptFor(options.turns));
      if (status !== 'done') throw new Error(`the run ended as ${status} after ${turns} turns`);
      const history = fullTurns(await readHistory(queue.address, session.sessionId), runId);
      // Around turn 10, and the last ones.
      const early = history.slice(4, 4 + windowTurns);
      const late = history.slice(-windowTurns);
      const [bytesEarly, bytesLate] = [early, late].map((each) => mean(each.map(bytesIn))) as [number, number];
      return {
        historyBytesPerTurnEarly: Math.round(bytesEarly),
        historyBytesPerTurnLate: Math.round(bytesLate),
        lateToEarly: round(bytesLate / bytesEarly, 3),
        modelInputBytesLate: inputBytes,
        eventsPerTurn: round(mean(late.map((events) => events.length))),
        msPerTurnLateToEarly: round(median(durations(late)) / median(durations(early)), 2),
      };
    });
  });
}

async function saySomething(session: SessionHandle, kilobytes: number): Promise<void> {
  for (let left = kilobytes; left > 0; left -= messageKb) {
    await session.run(`1 turn. ${'word '.repeat(Math.min(left, messageKb) * 200)}`);
  }
}

/** Milliseconds from the beginning of each turn to the beginning of the next, but for the last one. */
function durations(turns: readonly WeighedEvent[][]): number[] {
  const starts = turns.map(([first]) => first?.at ?? Number.NaN);
  return starts.slice(1).map((start, index) => start - (starts[index] ?? Number.NaN));
}

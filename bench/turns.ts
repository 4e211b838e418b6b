import { runBare } from './bare.ts';
import { runFloor } from './floor/run-floor.ts';
import { echoTool, type Figures, kilobyte, percentile, round, toolTurns, withEverturn, withServer } from './lib.ts';

/** Turns a second beside the floor (a hand-written workflow on the same server) and beside bare pi, in one run. */
export async function turns(options: { sessions: number; turns: number; local: boolean }): Promise<Figures> {
  return withServer(async (place) => {
    // Before and after, since a server's speed changes while it fills up.
    const before = await runFloor(place.server.address, options.sessions, options.turns);
    const agent = { tools: [echoTool({ local: options.local })], maxTurns: options.turns + 1 };
    const ours = await withEverturn(place, toolTurns(options.turns), agent, async ({ client }) => {
      await client.session('warm', { agent: 'bench' }).run('warm');
      const started = performance.now();
      const sessions = Array.from({ length: options.sessions }, (_, index) =>
        client.session(`s${index}`, { agent: 'bench' }),
      );
      await Promise.all(sessions.map((session) => session.run(kilobyte)));
      const seconds = (performance.now() - started) / 1_000;
      const first = sessions[0];
      if (first === undefined) throw new Error('no session');
      const stats = await first.stats();
      const steps: number[] = [];
      const log = await client.store.readLog('s0', 0, 100_000);
      const starts = log.filter((record) => record.body.kind === 'event' && record.body.event.type === 'turn_start');
      for (let index = 1; index < starts.length; index++)
        steps.push((starts[index]?.at ?? 0) - (starts[index - 1]?.at ?? 0));
      return { turnsPerSecond: (options.sessions * options.turns) / seconds, stats, steps };
    });
    const after = await runFloor(place.server.address, options.sessions, options.turns);
    const floor = (before.turnsPerSecond + after.turnsPerSecond) / 2;
    const bare = await runBare(options.sessions, options.turns);
    return {
      turnsPerSecond: round(ours.turnsPerSecond),
      floorTurnsPerSecond: round(floor),
      bareTurnsPerSecond: round(bare.turnsPerSecond),
      ratioToFloor: round(ours.turnsPerSecond / floor, 2),
      historyBytesPerTurn: Math.round(ours.stats.historyBytes / options.turns),
      historyEventsPerTurn: round(ours.stats.historyEvents / options.turns),
      stepP50Ms: round(percentile(ours.steps, 0.5)),
      stepP99Ms: round(percentile(ours.steps, 0.99)),
    };
  });
}

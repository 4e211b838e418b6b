import { beforeAll, expect, test } from '@jest/globals';
import { calls, harness, loop, scenario } from './build.ts';
import { compare, playOnPi } from './compare.ts';
import { playBoth } from './conformance.ts';
import { useStage } from './differences/both-sides.ts';
import type { EverturnObservation } from './everturn-play.ts';
import { same } from './normal.ts';
import type { Observation } from './observation.ts';
import { collapse } from './pi-events.ts';
import { allLoopHooks, type Scenario } from './scenario.ts';

// A comparison that accepts everything proves nothing: whatever is broken on one side must be noticed.

const observed = harness({ before_agent_start: 1, context: 1, tool_call: 1, tool_result: 1 }, { steeringMode: 'all' });
const looped = loop(allLoopHooks(true), { policy: 'both' });
const stage = useStage(observed, looped);

const scripts: Record<string, Scenario> = {
  harness: scenario(
    observed,
    {
      turns: [
        {
          calls: calls(
            { rank: 1, details: true, inTool: [{ do: 'steer', text: 'now' }] },
            { rank: 0, does: 'throw' },
            { gate: ['block'], rank: 2 },
          ),
        },
        { thinking: true, inStream: [{ do: 'followUp', text: 'later' }] },
      ],
    },
    { before: [{ do: 'setModel', model: 'play/other' }], turns: [{ stop: 'error' }] },
  ),
  loop: scenario(looped, {
    turns: [
      { calls: calls({}, { args: 'invalid' }), policy: { stop: false, level: 'high', keep: 1 }, steering: ['more'] },
      { calls: calls({ tool: 'one_by_one', gate: ['change'] }, {}), policy: { stop: true } },
    ],
  }),
};

const played = new Map<string, { pi: Observation; everturn: EverturnObservation }>();

beforeAll(async () => {
  for (const [name, script] of Object.entries(scripts)) {
    const { comparison, everturn } = await playBoth(stage(), script);
    if (!comparison.agree) throw new Error(comparison.difference);
    // One event for each message: where its start stands before its end is not compared.
    played.set(name, { pi: await playOnPi(script), everturn: { ...everturn, events: collapse(everturn.events) } });
  }
});

function changed(name: string, change: (side: Observation) => void): boolean {
  const { pi, everturn } = played.get(name)!;
  const copy = structuredClone(everturn);
  change(copy);
  return !compare(scripts[name]!, pi, copy).agree;
}

const parts = ['transcript', 'requests', 'calls', 'events', 'ends'] as const;
const cases = Object.keys(scripts).flatMap((name) => parts.map((part) => [name, part] as const));

test.each(cases)('%s: every single thing that is missing among the %s is noticed', (name, part) => {
  const { everturn } = played.get(name)!;
  expect(everturn[part].length).toBeGreaterThan(0);
  const unnoticed = everturn[part].filter(
    (item, index) => isCompared(name, part, item) && !changed(name, (side) => void side[part].splice(index, 1)),
  );
  expect(unnoticed).toEqual([]);
});

test.each(cases)('%s: two neighbours that have changed places among the %s are noticed', (name, part) => {
  const { everturn } = played.get(name)!;
  const items: readonly unknown[] = everturn[part];
  const unnoticed = items.flatMap((item, index) => {
    const next = items[index + 1];
    if (index + 1 >= items.length || same(item, next) || !isCompared(name, part, item) || !isCompared(name, part, next))
      return [];
    const noticed = changed(name, (side) => {
      const list = side[part] as unknown[];
      [list[index], list[index + 1]] = [list[index + 1], list[index]];
    });
    return noticed ? [] : [[item, next]];
  });
  expect(unnoticed).toEqual([]);
});

test.each(Object.keys(scripts))('%s: a changed text, argument, number or name is noticed', (name) => {
  const changes: ((side: Observation) => void)[] = [
    (side) => Object.assign(side.requests[0]!, { systemPrompt: 'Another.' }),
    (side) => Object.assign(side.requests[0]!, { model: 'play/none' }),
    (side) => Object.assign(side.requests[0]!, { reasoning: 'max' }),
    (side) => void side.requests[1]!.messages.pop(),
    (side) => void side.requests[0]!.tools.pop(),
    (side) => Object.assign(side.calls.at(-1)!.seen as object, { more: true }),
    (side) => Object.assign(side.transcript.at(-1)!.message as object, { stopReason: 'other' }),
    (side) => Object.assign(side.events.find(({ type }) => type === 'tool_execution_end')!, { isError: 'maybe' }),
    (side) => Object.assign(side.ends[0]!, { status: 'aborted' }),
  ];
  expect(changes.map((change) => changed(name, change))).toEqual(changes.map(() => true));
});

/** pi's loop has none of the harness's events. */
function isCompared(name: string, part: string, item: unknown): boolean {
  if (part !== 'events') return true;
  const { type } = item as { type: string };
  return (
    name === 'harness' || !['queue_update', 'save_point', 'settled', 'abort', 'after_provider_response'].includes(type)
  );
}

test('a message without its start, without its end, or with another inside it shows in the events', () => {
  const start = { type: 'message_start', role: 'user' };
  const end = { type: 'message_end', message: { role: 'user' } };
  const types = (events: { type: string; role?: string }[]) => collapse(events as never).map(({ type }) => type);
  expect(types([start, end])).toEqual(['message']);
  expect(types([end])).toEqual(['message without start', 'message']);
  expect(types([start])).toEqual(['message without end']);
  expect(types([start, start, end])).toEqual(['message without end', 'message']);
  expect(types([{ type: 'message_update' }])).toEqual(['update without message']);
});

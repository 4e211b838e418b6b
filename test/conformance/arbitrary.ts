import fc from 'fast-check';
import {
  type Action,
  actionPlaces,
  type CallScript,
  harnessHooks,
  levels,
  loopHooks,
  models,
  policyKinds,
  queueModes,
  type Scenario,
  type Setup,
  type TurnScript,
  toolNames,
} from './scenario.ts';
import { type RawRun, settle } from './settle.ts';

/** Mostly the first, which is also what a failing scenario shrinks to; now and then one of the others. */
function mostly<First, Other>(usual: First, others: readonly Other[], weight = 4): fc.Arbitrary<First | Other> {
  return fc.oneof({ arbitrary: fc.constant(usual), weight }, { arbitrary: fc.constantFrom(...others), weight: 1 });
}

const rarely = (weight = 6) => mostly(false, [true], weight);
const pair = <Move>(arbitrary: fc.Arbitrary<Move>) => fc.tuple(arbitrary, arbitrary) as fc.Arbitrary<Move[]>;

const setting: fc.Arbitrary<Action> = fc.oneof(
  fc.record({ do: fc.constant('setModel' as const), model: fc.constantFrom(...models) }),
  fc.record({ do: fc.constant('setThinkingLevel' as const), level: fc.constantFrom(...levels) }),
  fc.record({ do: fc.constant('setActiveTools' as const), tools: fc.subarray([...toolNames]) }),
  fc.record({
    do: fc.constant('setQueueMode' as const),
    queue: fc.constantFrom('steer' as const, 'followUp' as const),
    mode: fc.constantFrom(...queueModes),
  }),
);

const message = (queues: ('steer' | 'followUp' | 'nextTurn')[]): fc.Arbitrary<Action> =>
  fc.record({ do: fc.constantFrom(...queues), text: fc.constant(''), image: rarely(9) });

const idleAction = fc.oneof({ arbitrary: message(['nextTurn']), weight: 2 }, { arbitrary: setting, weight: 1 });
const action: fc.Arbitrary<Action> = fc.oneof(
  { arbitrary: message(['steer', 'followUp', 'nextTurn']), weight: 5 },
  { arbitrary: setting, weight: 2 },
);

/** Up to two things done at one place; mostly nothing. */
function actions(one: fc.Arbitrary<Action>, weight: number): fc.Arbitrary<Action[]> {
  return fc.oneof(
    { arbitrary: fc.constant<Action[]>([]), weight },
    { arbitrary: fc.tuple(one) as fc.Arbitrary<Action[]>, weight: 2 },
    { arbitrary: fc.tuple(one, one) as fc.Arbitrary<Action[]>, weight: 1 },
  );
}

const call: fc.Arbitrary<CallScript> = fc.record({
  tool: fc.oneof(
    { arbitrary: fc.constantFrom('echo' as const), weight: 6 },
    { arbitrary: fc.constantFrom('alias' as const, 'one_by_one' as const, 'ghost' as const), weight: 3 },
  ),
  args: mostly('valid', ['coerced', 'extra', 'invalid'] as const),
  does: mostly('return', ['throw'] as const),
  details: rarely(),
  usage: rarely(),
  terminate: rarely(4),
  updates: mostly(0, [1, 2]),
  rank: fc.nat(9),
  gate: pair(mostly('nothing', ['pass', 'block', 'blockSilently', 'change', 'throw'] as const, 2)),
  result: pair(
    mostly('nothing', ['content', 'details', 'isError', 'notError', 'usage', 'terminate', 'throw'] as const, 1),
  ),
  inGate: actions(action, 22),
  inTool: actions(action, 12),
  inResult: actions(action, 22),
});

const policy: fc.Arbitrary<TurnScript['policy']> = fc.record(
  {
    stop: rarely(4),
    model: fc.constantFrom(...models),
    level: fc.constantFrom(...levels),
    keep: fc.integer({ min: 1, max: 2 }),
    prompt: fc.boolean(),
  },
  { requiredKeys: ['stop'] },
);

const queued = mostly<string[], string[]>([], [[''], ['', '']], 1);

const turn: fc.Arbitrary<TurnScript> = fc.record({
  thinking: rarely(),
  text: fc.boolean(),
  calls: fc.array(call, { maxLength: 4, size: 'small' }),
  stop: mostly('normal', ['length', 'error'] as const, 10),
  context: pair(mostly('nothing', ['dropFirst', 'add', 'add', 'throw'] as const, 3)),
  request: pair(mostly('nothing', ['headers', 'metadata', 'cacheRetention', 'clear', 'throw'] as const, 3)),
  payload: pair(mostly('nothing', ['replace', 'replace', 'throw'] as const, 3)),
  beforeRequest: actions(action, 22),
  beforeStream: actions(action, 26),
  inStream: actions(action, 18),
  policy,
  steering: queued,
  followUps: queued,
});

const start = fc.record({
  messages: fc.array(fc.constantFrom('user' as const, 'custom' as const, 'note' as const), { maxLength: 2 }),
  systemPrompt: fc.boolean(),
  throws: rarely(12),
});

const run: fc.Arbitrary<RawRun> = fc.record({
  before: actions(idleAction, 6),
  prompt: fc.record({
    text: fc.constant(''),
    image: rarely(9),
    by: mostly('text' as const, ['skill', 'template'] as const, 3),
  }),
  start: pair(start),
  turns: fc.array(turn, { minLength: 1, maxLength: 3 }),
  abort: mostly('nowhere' as const, actionPlaces, 2),
});

const handlerCount = fc.oneof(
  { arbitrary: fc.constant(0), weight: 3 },
  { arbitrary: fc.constant(1), weight: 3 },
  { arbitrary: fc.constant(2), weight: 1 },
);

const setup: fc.Arbitrary<Setup> = fc.oneof(
  {
    arbitrary: fc.record({
      layer: fc.constant('harness' as const),
      steeringMode: fc.constantFrom(...queueModes),
      followUpMode: fc.constantFrom(...queueModes),
      handlers: record(harnessHooks, handlerCount),
    }),
    weight: 1,
  },
  {
    arbitrary: fc.record({
      layer: fc.constant('loop' as const),
      toolExecution: fc.constantFrom('parallel' as const, 'sequential' as const),
      hooks: record(loopHooks, fc.boolean()),
      policy: fc.constantFrom(...policyKinds),
    }),
    weight: 1,
  },
);

function record<Key extends string, Value>(
  keys: readonly Key[],
  value: fc.Arbitrary<Value>,
): fc.Arbitrary<Record<Key, Value>> {
  return fc.record(Object.fromEntries(keys.map((key) => [key, value]))) as unknown as fc.Arbitrary<Record<Key, Value>>;
}

/** Scenarios that both sides can play: what makes no sense together is taken out, the same for generated and shrunk ones. */
export const scenarios: fc.Arbitrary<Scenario> = fc
  .record({
    setup,
    level: mostly('off' as const, ['low', 'high'] as const),
    runs: fc.array(run, { minLength: 1, maxLength: 2 }),
  })
  .map(settle);

import {
  type CallScript,
  harnessHooks,
  loopHooks,
  type RunScript,
  type Scenario,
  type Setup,
  type TurnScript,
} from './scenario.ts';

/** Scenarios by hand: what is not said is nothing. */

type HarnessSetup = Extract<Setup, { layer: 'harness' }>;
type LoopSetup = Extract<Setup, { layer: 'loop' }>;

export function harness(
  handlers: Partial<HarnessSetup['handlers']> = {},
  modes: Partial<HarnessSetup> = {},
): HarnessSetup {
  const none = Object.fromEntries(harnessHooks.map((hook) => [hook, 0])) as HarnessSetup['handlers'];
  return {
    layer: 'harness',
    steeringMode: 'one-at-a-time',
    followUpMode: 'one-at-a-time',
    handlers: { ...none, ...handlers },
    ...modes,
  };
}

export function loop(hooks: Partial<LoopSetup['hooks']> = {}, options: Partial<LoopSetup> = {}): LoopSetup {
  const none = Object.fromEntries(loopHooks.map((hook) => [hook, false])) as LoopSetup['hooks'];
  return { layer: 'loop', toolExecution: 'parallel', policy: 'none', hooks: { ...none, ...hooks }, ...options };
}

export function scenario(
  setup: Setup,
  ...runs: (Partial<Omit<RunScript, 'turns'>> & { turns?: Partial<TurnScript>[] })[]
): Scenario {
  return {
    setup,
    level: 'off',
    runs: runs.map(({ turns = [], ...run }, index) => ({
      before: [],
      prompt: { text: `prompt ${index}`, image: false, by: 'text' },
      start: [],
      ...run,
      turns: turns.map(turn),
    })),
  };
}

function turn(script: Partial<TurnScript>): TurnScript {
  return {
    thinking: false,
    text: true,
    calls: [],
    stop: 'normal',
    context: [],
    request: [],
    payload: [],
    beforeRequest: [],
    beforeStream: [],
    inStream: [],
    policy: { stop: false },
    steering: [],
    followUps: [],
    ...script,
  };
}

function call(script: Partial<CallScript> = {}): CallScript {
  return {
    tool: 'echo',
    args: 'valid',
    does: 'return',
    details: false,
    usage: false,
    terminate: false,
    updates: 0,
    rank: 0,
    gate: [],
    result: [],
    inGate: [],
    inTool: [],
    inResult: [],
    ...script,
  };
}

/** Several calls, which end in the order of the source. */
export function calls(...scripts: Partial<CallScript>[]): CallScript[] {
  return scripts.map((script, rank) => call({ rank, ...script }));
}

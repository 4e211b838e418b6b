import {
  type Action,
  type ActionPlace,
  allLoopHooks,
  type CallScript,
  type RunScript,
  type Scenario,
  type Setup,
  type TurnScript,
} from './scenario.ts';

/** A generated run, with the place where it is to be aborted. */
export interface RawRun extends RunScript {
  abort: ActionPlace | 'nowhere';
}

/** Replies cut by the output limit in a row that a run survives (difference 2). */
const maxLengthStops = 2;

/**
 * Makes a generated scenario one that means something: moves of handlers that the agent does not have are gone, a run
 * ends with what ends it, and every message has a text of its own.
 */
export function settle({ setup: generated, level, runs }: Omit<Scenario, 'runs'> & { runs: RawRun[] }): Scenario {
  const setup = settleSetup(generated);
  const number = counter();
  return {
    setup,
    level,
    runs: runs.map((run, index) => numberTexts(settleRun(run, setup, index === runs.length - 1), index, number)),
  };
}

function settleRun({ abort, ...run }: RawRun, setup: Setup, last: boolean): RunScript {
  // What pi loses then (difference 18) would be missing in every later request: only the last run begins with a throw.
  const start = (setup.layer === 'harness' ? run.start.slice(0, setup.handlers.before_agent_start) : []).map((move) =>
    last ? move : { ...move, throws: false },
  );
  const before = setup.layer === 'harness' ? run.before : [];
  const by = setup.layer === 'harness' ? run.prompt.by : 'text';
  const prompt = { ...run.prompt, by, image: run.prompt.image && by === 'text' };
  if (start.some(({ throws }) => throws)) return { ...run, before, prompt, start, turns: [] };
  const turns: TurnScript[] = [];
  let lengthStops = 0;
  for (const raw of withAbort(run.turns, abort)) {
    const turn = settleTurn(raw, setup);
    lengthStops = turn.stop === 'length' && turn.calls.length > 0 ? lengthStops + 1 : 0;
    turns.push(lengthStops > maxLengthStops ? { ...turn, stop: 'normal' } : turn);
    if (lengthStops > maxLengthStops) lengthStops = 0;
    if (turn.stop === 'error' || throwsBefore(turn) || abortsIn(turn)) break;
  }
  return { ...run, before, prompt, start, turns };
}

/** An agent with policies has all hooks or none, so that there are few of them. */
function settleSetup(setup: Setup): Setup {
  if (setup.layer === 'harness' || setup.policy === 'none') return setup;
  const wanted = Object.values(setup.hooks).filter(Boolean).length;
  return { ...setup, hooks: allLoopHooks(wanted >= 3) };
}

/** Puts the abort at its place, in the first turn that has it, behind what is done there besides. */
function withAbort(turns: TurnScript[], place: RawRun['abort']): TurnScript[] {
  if (place === 'nowhere') return turns;
  const isInBatch = place === 'gate' || place === 'tool' || place === 'result hook';
  const at = isInBatch ? turns.findIndex(({ calls }) => calls.length > 0) : turns.length - 1;
  const and = (actions: Action[]): Action[] => [...actions, { do: 'abort' }];
  return turns.map((turn, index) => {
    if (index !== at) return turn;
    if (place === 'hook before the request') return { ...turn, beforeRequest: and(turn.beforeRequest) };
    if (place === 'before the first token') return { ...turn, beforeStream: and(turn.beforeStream) };
    if (place === 'stream') return { ...turn, inStream: and(turn.inStream) };
    const chosen = turn.calls.length > 1 ? 1 : 0;
    const calls = turn.calls.map((call, number) => {
      if (number !== chosen) return call;
      if (place === 'gate') return { ...call, inGate: and(call.inGate) };
      return place === 'tool' ? { ...call, inTool: and(call.inTool) } : { ...call, inResult: and(call.inResult) };
    });
    return { ...turn, calls };
  });
}

function settleTurn(turn: TurnScript, setup: Setup): TurnScript {
  const kept = setup.layer === 'harness' ? harnessTurn(turn, setup) : loopTurn(turn, setup);
  const calls = ranked(kept.calls, setup);
  const settled = oneThrow({ ...kept, calls });
  return abortsIn(settled) ? abortedTurn(settled) : settled;
}

function harnessTurn(turn: TurnScript, { handlers }: Extract<Setup, { layer: 'harness' }>): TurnScript {
  const before = handlers.context + handlers.before_provider_request > 0;
  return {
    ...turn,
    context: turn.context.slice(0, handlers.context),
    request: turn.request.slice(0, handlers.before_provider_request),
    payload: turn.payload.slice(0, handlers.before_provider_payload),
    beforeRequest: before ? turn.beforeRequest : [],
    policy: { stop: false },
    steering: [],
    followUps: [],
    calls: turn.calls.map((call) => ({
      ...call,
      gate: call.gate.slice(0, handlers.tool_call),
      result: call.result.slice(0, handlers.tool_result),
      inGate: handlers.tool_call > 0 ? call.inGate : [],
      inResult: handlers.tool_result > 0 ? call.inResult : [],
    })),
  };
}

/** In the loop the queues are hooks, and policies are asked; settings and signals belong to the harness. */
function loopTurn(turn: TurnScript, { hooks, policy }: Extract<Setup, { layer: 'loop' }>): TurnScript {
  const aborts = (actions: Action[], when = true) =>
    when ? actions.filter((action) => action.do === 'abort').slice(0, 1) : [];
  const { stop, ...prepared } = turn.policy;
  // The first move is transformContext's, the second convertToLlm's. Neither may throw, says their contract.
  const [transform = 'nothing', convert = 'nothing'] = turn.context.map((move) =>
    move === 'throw' ? 'nothing' : move,
  );
  return {
    ...turn,
    context: [hooks.transformContext ? transform : 'nothing', hooks.convertToLlm ? convert : 'nothing'],
    request: [],
    payload: [],
    beforeRequest: aborts(turn.beforeRequest, hooks.transformContext || hooks.convertToLlm),
    beforeStream: aborts(turn.beforeStream),
    inStream: aborts(turn.inStream),
    policy: {
      stop: stop && (policy === 'stop' || policy === 'both'),
      ...(policy === 'prepare' || policy === 'both' ? prepared : {}),
    },
    steering: hooks.queueHooks ? turn.steering : [],
    followUps: hooks.queueHooks ? turn.followUps : [],
    calls: turn.calls.map((call) => ({
      ...call,
      gate: hooks.beforeToolCall ? call.gate.slice(0, 1) : [],
      result: hooks.afterToolCall ? call.result.slice(0, 1) : [],
      inGate: aborts(call.inGate, hooks.beforeToolCall),
      inTool: aborts(call.inTool),
      inResult: aborts(call.inResult, hooks.afterToolCall),
    })),
  };
}

/** Ranks are unique; where the batch may run one by one, they follow the source. */
function ranked(calls: CallScript[], setup: Setup): CallScript[] {
  const sequential =
    (setup.layer === 'loop' && setup.toolExecution === 'sequential') || calls.some(({ tool }) => tool === 'one_by_one');
  const order = calls
    .map((call, index) => ({ index, rank: sequential ? index : call.rank }))
    .sort((a, b) => a.rank - b.rank || a.index - b.index);
  return calls.map((call, index) => ({ ...call, rank: order.findIndex((place) => place.index === index) }));
}

/** At most one hook before the request throws. */
function oneThrow(turn: TurnScript): TurnScript {
  let thrown = false;
  const first = <Move extends string>(moves: Move[]) =>
    moves.map((move) => {
      if (move !== 'throw') return move;
      const kept = thrown ? ('nothing' as Move) : move;
      thrown = true;
      return kept;
    });
  return { ...turn, context: first(turn.context), request: first(turn.request), payload: first(turn.payload) };
}

function throwsBefore({ context, request, payload }: TurnScript): boolean {
  return [...context, ...request, ...payload].includes('throw');
}

function abortsIn(turn: TurnScript): boolean {
  return places(turn).some((actions) => actions.some((action) => action.do === 'abort'));
}

function places(turn: TurnScript): Action[][] {
  const calls = turn.calls.flatMap((call) => [call.inGate, call.inTool, call.inResult]);
  return [turn.beforeRequest, turn.beforeStream, turn.inStream, ...calls];
}

/**
 * The turn of an abort is the last one with a script. Its first abort counts; at other places nobody does anything. No
 * hook throws before it, and no call terminates: what is left of the batch decides whether pi asks once more.
 */
function abortedTurn(turn: TurnScript): TurnScript {
  let found = false;
  const only = (actions: Action[]) => {
    const at = actions.findIndex((action) => action.do === 'abort');
    if (found || at < 0) return [];
    found = true;
    return actions.slice(0, at + 1);
  };
  const inGate = turn.calls.some((call) => call.inGate.some((action) => action.do === 'abort'));
  const calm = <Move extends string>(moves: Move[]) =>
    moves.map((move) => (move === 'throw' ? ('nothing' as Move) : move));
  return {
    ...turn,
    stop: 'normal',
    context: calm(turn.context),
    request: calm(turn.request),
    payload: calm(turn.payload),
    beforeRequest: only(turn.beforeRequest),
    beforeStream: only(turn.beforeStream),
    inStream: only(turn.inStream),
    calls: turn.calls.map((call) => ({
      ...call,
      terminate: false,
      // A call that only pi enters, to see it abort at once, must not be changed by its result hooks (difference 12).
      result: call.result.map((move) => (move === 'terminate' || inGate ? 'nothing' : move)),
      inGate: only(call.inGate),
      inTool: only(call.inTool),
      inResult: only(call.inResult),
    })),
  };
}

function numberTexts(run: RunScript, index: number, number: () => number): RunScript {
  const texts = (actions: Action[]) =>
    actions.map((action) => ('text' in action ? { ...action, text: `${action.do} ${number()}` } : action));
  const queued = (name: string, items: string[]) => items.map(() => `${name} ${number()}`);
  return {
    ...run,
    before: texts(run.before),
    prompt: { ...run.prompt, text: `prompt ${index}` },
    turns: run.turns.map((turn) => ({
      ...turn,
      beforeRequest: texts(turn.beforeRequest),
      beforeStream: texts(turn.beforeStream),
      inStream: texts(turn.inStream),
      steering: queued('polled steering', turn.steering),
      followUps: queued('polled follow-up', turn.followUps),
      calls: turn.calls.map((call) => ({
        ...call,
        inGate: texts(call.inGate),
        inTool: texts(call.inTool),
        inResult: texts(call.inResult),
      })),
    })),
  };
}

function counter(): () => number {
  let last = 0;
  return () => {
    last += 1;
    return last;
  };
}

/** Scenarios: plain data that a fast-check generator makes, and that pi and Everturn play alike. */

export const queueModes = ['one-at-a-time', 'all'] as const;
export type Mode = (typeof queueModes)[number];

export const harnessHooks = [
  'before_agent_start',
  'context',
  'before_provider_request',
  'before_provider_payload',
  'tool_call',
  'tool_result',
] as const;
export type HarnessHook = (typeof harnessHooks)[number];

export const loopHooks = ['convertToLlm', 'transformContext', 'beforeToolCall', 'afterToolCall', 'queueHooks'] as const;
export type LoopHook = (typeof loopHooks)[number];

export const policyKinds = ['none', 'stop', 'prepare', 'both'] as const;
export type PolicyKind = (typeof policyKinds)[number];

/** What the agent is made of. It decides the agent's name, so scenarios of one set-up share an agent. */
export type Setup =
  | {
      /** pi's AgentHarness. */
      layer: 'harness';
      steeringMode: Mode;
      followUpMode: Mode;
      /** How many handlers each event has: 0 to 2. */
      handlers: Record<HarnessHook, number>;
    }
  | {
      /** pi's low-level loop, which alone has the hooks of the agent layer. */
      layer: 'loop';
      toolExecution: 'parallel' | 'sequential';
      hooks: Record<LoopHook, boolean>;
      policy: PolicyKind;
    };

export const models = ['play/main', 'play/other'] as const;
export type ModelName = (typeof models)[number];
export const levels = ['off', 'low', 'high'] as const;
export type Level = (typeof levels)[number];

/** Something that a user does at a scripted moment. Texts are unique in a scenario. */
export type Action =
  | { do: 'steer' | 'followUp' | 'nextTurn'; text: string; image?: boolean }
  | { do: 'abort' }
  | { do: 'setModel'; model: ModelName }
  | { do: 'setThinkingLevel'; level: Level }
  | { do: 'setActiveTools'; tools: string[] }
  | { do: 'setQueueMode'; queue: 'steer' | 'followUp'; mode: Mode };

/** What one handler of before_agent_start does. `messages`: the roles that it adds. */
export interface StartMove {
  messages: ('user' | 'custom' | 'note')[];
  systemPrompt: boolean;
  throws: boolean;
}
export type ContextMove = 'nothing' | 'dropFirst' | 'add' | 'throw';
export type RequestMove = 'nothing' | 'headers' | 'metadata' | 'cacheRetention' | 'clear' | 'throw';
export type PayloadMove = 'nothing' | 'replace' | 'throw';
export type GateMove = 'nothing' | 'pass' | 'block' | 'blockSilently' | 'change' | 'throw';
export type ResultMove = 'nothing' | 'content' | 'details' | 'isError' | 'notError' | 'usage' | 'terminate' | 'throw';

export const toolNames = ['echo', 'alias', 'one_by_one'] as const;

/** One call of a reply, and what becomes of it. */
export interface CallScript {
  /** A tool that exists, or `ghost`, which does not. */
  tool: (typeof toolNames)[number] | 'ghost';
  args: 'valid' | 'coerced' | 'extra' | 'invalid';
  does: 'return' | 'throw';
  details: boolean;
  usage: boolean;
  terminate: boolean;
  updates: number;
  /** In a parallel batch calls end in the order of their ranks. Unique in a batch. */
  rank: number;
  /** Per handler of tool_call; the first one is beforeToolCall's. */
  gate: GateMove[];
  /** Per handler of tool_result; the first one is afterToolCall's. */
  result: ResultMove[];
  inGate: Action[];
  inTool: Action[];
  inResult: Action[];
}

export interface TurnScript {
  thinking: boolean;
  text: boolean;
  calls: CallScript[];
  stop: 'normal' | 'length' | 'error';
  context: ContextMove[];
  request: RequestMove[];
  payload: PayloadMove[];
  /** Done in the first pre-request hook that the agent has. */
  beforeRequest: Action[];
  /** Done before the first token. */
  beforeStream: Action[];
  /** Done between two chunks. */
  inStream: Action[];
  /** What the policies decide after this turn. */
  policy: { stop: boolean; model?: ModelName; level?: Level; keep?: number; prompt?: boolean };
  /** Messages that the queue hooks have at the poll after this turn. */
  steering: string[];
  followUps: string[];
}

export interface RunScript {
  /** Done while the session is idle. */
  before: Action[];
  /** `by`: a text, or the text as instructions of a skill or as argument of a template. */
  prompt: { text: string; image: boolean; by: 'text' | 'skill' | 'template' };
  start: StartMove[];
  turns: TurnScript[];
}

/** Places inside a run where something may be done. */
export const actionPlaces = [
  'hook before the request',
  'before the first token',
  'stream',
  'gate',
  'tool',
  'result hook',
] as const;
export type ActionPlace = (typeof actionPlaces)[number];

export interface Scenario {
  setup: Setup;
  level: Level;
  runs: RunScript[];
}

export const baseSystemPrompt = 'You play a part.';

/** The name of the agent that plays a set-up: the same on both sides, and known to the policies of the bundle. */
export function agentName(setup: Setup): string {
  if (setup.layer === 'harness') {
    const counts = harnessHooks.map((hook) => setup.handlers[hook]).join('');
    return `harness-${counts}-${setup.steeringMode}-${setup.followUpMode}`;
  }
  const bits = loopHooks.map((hook) => (setup.hooks[hook] ? '1' : '0')).join('');
  return `loop-${bits}-${setup.toolExecution}-${setup.policy}`;
}

/** All hooks of the loop, or none: what agents with policies have. */
export function allLoopHooks(wanted: boolean): Record<LoopHook, boolean> {
  return Object.fromEntries(loopHooks.map((hook) => [hook, wanted])) as Record<LoopHook, boolean>;
}

/** The id of a call tells where it stands in the script. */
export function callId(run: number, turn: number, index: number): string {
  return `c${run}.${turn}.${index}`;
}

export function callAt(scenario: Scenario, id: string): CallScript | undefined {
  const [run = -1, turn = -1, index = -1] = id.slice(1).split('.').map(Number);
  return scenario.runs[run]?.turns[turn]?.calls[index];
}

import type { ThinkingLevel } from './entries.ts';
import type { ErrorInfo } from './errors.ts';
import type { NewRecord, RunStatus, ToolOutcomeKind } from './events.ts';
import type { AgentManifest } from './manifest.ts';
import type { AgentMessage, AssistantMessage, ToolResultMessage } from './messages.ts';
import type { PromptByName } from './signals.ts';
import type { UsageTotals } from './usage.ts';

/**
 * The border between workflow and effects: inputs name things, results say what was decided. Message text is in a result
 * only where a policy needs it, and where it could not be written. Each effect writes its own outcome to the log before it returns, and returns the stored
 * outcome when it is asked again.
 */
export interface Effects {
  openSession(input: OpenSessionInput): Promise<OpenSessionResult>;
  streamAssistantResponse(input: ModelInput): Promise<ModelResult>;
  beforeAgentStart(input: StartInput): Promise<StartResult>;
  beforeToolCall(input: GateInput): Promise<GateResult>;
  executeTool(input: ToolInput): Promise<ToolResult>;
  pollQueueHook(input: QueueHookInput): Promise<QueueHookResult>;
  loadContext(input: LoadContextInput): Promise<LoadContextResult>;
  saveContext(input: SaveContextInput): Promise<SaveContextResult>;
  checkModel(input: { model: string }): Promise<void>;
  expandPrompt(input: ExpandInput): Promise<ExpandResult>;
}

/** Small writes, run as local activities: what the workflow causes when no effect is near. */
export interface LocalEffects {
  append(input: AppendInput): Promise<AppendResult>;
}

export interface RunPlace {
  agent: string;
  runId: string;
  /** From 0. */
  turn: number;
}

export interface OpenSessionInput {
  agent: string;
  model?: string;
  thinkingLevel?: ThinkingLevel;
  activeTools?: string[];
  continuingRunId?: string;
}

export interface OpenSessionResult {
  epoch: number;
  leaf: string | null;
  model: string;
  thinkingLevel: ThinkingLevel;
  /** null: all tools of the agent. */
  activeTools: string[] | null;
  manifest: AgentManifest;
}

/** A context that a policy put in place of the transcript: it stands before all entries after `afterEntryId`. */
export interface ContextBase {
  digest: string;
  afterEntryId: string | null;
}

export interface ModelInput extends RunPlace {
  entryId: string;
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[] | null;
  /** Written first: events and entries that wait for an effect to travel with. */
  write: NewRecord[];
  /** In the first turn: reserves the run id in the store. Another token with the same run id is a repeated prompt. */
  openRun?: string;
  /** True: a gate follows, which validates the arguments and announces the calls. */
  gated?: boolean;
  base?: ContextBase;
  /** Digest of the system prompt of this run, when before_agent_start changed it. */
  systemPrompt?: string;
  /** True: getSteeringMessages is asked first, and its messages stand behind those of `write`. */
  poll?: boolean;
  /** True: a policy needs the message itself. */
  wantMessage?: boolean;
  /** True: write, then an aborted message, and no request. */
  aborted?: boolean;
}

export interface CallPlan {
  index: number;
  name: string;
  /** `ready`: to be executed (after its gate, if there is one). `settled`: it has its result already. */
  state: 'ready' | 'settled';
  /** Only of settled calls. */
  terminate?: boolean;
  /** Only of settled calls, when a policy needs it. */
  toolResult?: ToolResultMessage;
  /** Digest of the arguments as the gate left them, when it changed them. */
  args?: string;
}

export interface ModelResult {
  /** The run id was used before, or the run has ended in the log: nothing of the turn was written. */
  duplicate?: boolean;
  entryId: string;
  leaf: string | null;
  stopReason: AssistantMessage['stopReason'];
  error?: ErrorInfo;
  calls: CallPlan[];
  /** True: the calls run one after the other. */
  sequential?: boolean;
  /** True: each call passes the gate, which has no handlers then, so that refused ones keep their place in the order. */
  gate?: boolean;
  usage: UsageTotals;
  /** What the poll gave, when a policy needs it. */
  steering?: AgentMessage[];
  message?: AssistantMessage;
  /**
   * Of `write`, what is still to be written: the reply was there already, or the whole run was, and `workflow reset`
   * brought messages or changes of settings before it that had come after it.
   */
  unwritten?: NewRecord[];
}

export interface StartInput extends RunPlace {
  /** See ModelInput. */
  openRun: string;
  /** Handlers that the session was opened with. */
  handlers: number;
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[] | null;
  /** The messages that open the run. */
  messages: AgentMessage[];
}

export interface StartResult {
  /** The run id was used before, or the run has ended in the log: nobody was asked. */
  duplicate?: boolean;
  /** To be added behind the messages that open the run. */
  messages: AgentMessage[];
  /** Digest of the system prompt that holds for the whole run, when a handler changed it. */
  systemPrompt?: string;
}

export interface ExpandInput {
  agent: string;
  prompt: PromptByName;
}

export interface ExpandResult {
  text: string;
}

export interface GateInput extends RunPlace {
  entryId: string;
  /** Handlers that the session was opened with: a worker that has fewer lets nothing through. */
  handlers: number;
  indexes: number[];
  sequential?: boolean;
  wantMessage?: boolean;
}

export interface GateResult {
  calls: CallPlan[];
}

export interface ToolInput extends RunPlace {
  entryId: string;
  index: number;
  sequential?: boolean;
  wantMessage?: boolean;
  /** Digest of the arguments that the gate left. Default: the model's own, validated. */
  args?: string;
}

export interface ToolResult {
  index: number;
  outcome: ToolOutcomeKind;
  terminate: boolean;
  usage?: UsageTotals;
  toolResult?: ToolResultMessage;
}

export interface QueueHookInput extends RunPlace {
  queue: 'steer' | 'followUp';
  poll: number;
}

export interface QueueHookResult {
  messages: AgentMessage[];
}

export interface LoadContextInput {
  agent: string;
  runId: string;
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[] | null;
  base?: ContextBase;
  systemPrompt?: string;
}

export interface LoadContextResult {
  systemPrompt: string;
  messages: AgentMessage[];
  /** How many of the last messages were added by this run. */
  newMessages: number;
}

export interface SaveContextInput extends RunPlace {
  systemPrompt: string;
  messages: AgentMessage[];
}

export type SaveContextResult = ContextBase;

export interface AppendInput {
  /** Names the write in the session: repeated, it changes nothing. */
  key: string;
  runId?: string;
  turn?: number;
  records: NewRecord[];
  settings?: { model?: string; thinkingLevel?: ThinkingLevel; activeTools?: string[] | null };
  openRun?: string;
  /** Gives every call of this batch that has no result yet the one that says so. */
  settleOpen?: { entryId: string; outcome: 'aborted' | 'failed'; reason: string; sequential?: boolean };
  closeRun?: { status: RunStatus; error?: ErrorInfo };
  wantMessage?: boolean;
}

export interface AppendResult {
  leaf: string | null;
  duplicate?: boolean;
  /** All results of the batch of `settleOpen`, in source order, when wanted. */
  toolResults?: ToolResultMessage[];
}

/** Only the flags that are set: each input and result stands in the history, where a false would cost its bytes. */
export function flags<Name extends string>(all: Record<Name, boolean | undefined>): Partial<Record<Name, true>> {
  return Object.fromEntries(Object.entries(all).filter(([, set]) => set === true)) as Partial<Record<Name, true>>;
}

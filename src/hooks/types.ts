import type {
  AgentMessage,
  AssistantMessage,
  ImageContent,
  Message,
  TextContent,
  ToolCall,
  Usage,
} from '../common/messages.ts';
import type { AgentContext } from '../common/policy.ts';

/** The names of the hook-system document. */
export type AgentToolCall = ToolCall;

export interface AgentToolResult<Details = unknown> {
  content: (TextContent | ImageContent)[];
  details?: Details;
  usage?: Usage;
  /** A hint: when every result of a batch has it, the run stops after this turn unless messages wait. */
  terminate?: boolean;
}

export interface BeforeToolCallContext {
  assistantMessage: AssistantMessage;
  toolCall: AgentToolCall;
  /** Validated against the tool's schema. What a hook changes in place is what the tool gets, unvalidated, as in pi. */
  args: unknown;
  context: AgentContext;
}

/** A gate may ask a person. Until approvals are there the call is recorded and blocked with "approval required". */
export interface AskResult {
  ask?: {
    reason: string;
    /** Milliseconds that the question stays open. Default: no limit. */
    expiresAfter?: number;
  };
}

export interface BeforeToolCallResult extends AskResult {
  /** True: the tool is not executed. */
  block?: boolean;
  /** What the model is told. Default: "Tool execution was blocked". */
  reason?: string;
}

export interface AfterToolCallContext {
  assistantMessage: AssistantMessage;
  toolCall: AgentToolCall;
  args: unknown;
  result: AgentToolResult;
  isError: boolean;
  context: AgentContext;
}

/** Each field that is neither undefined nor null replaces the result's. */
export interface AfterToolCallResult {
  content?: (TextContent | ImageContent)[];
  details?: unknown;
  isError?: boolean;
  usage?: Usage;
  terminate?: boolean;
}

type Awaitable<T> = T | Promise<T>;

/** How a hook is run. */
export interface HookSettings {
  /** Tries in all before its error counts. Default: 3. */
  attempts?: number;
  /** Milliseconds before the second try, doubled after that. Default: 100. */
  delayMs?: number;
  /**
   * Gates only: true makes a pure, quick hook a local activity, which costs 2 ms instead of 11 but has no heartbeat. It
   * counts when every handler of the gate is local. Default: false.
   */
  local?: boolean;
}

export type AgentHookName =
  | 'convertToLlm'
  | 'transformContext'
  | 'beforeToolCall'
  | 'afterToolCall'
  | 'getSteeringMessages'
  | 'getFollowUpMessages';

/** The agent-layer hooks that are effects or gates. shouldStopAfterTurn and prepareNextTurn are policies (`definePolicy`). */
export interface AgentHooks {
  /** Filters and converts the transcript for the model. Default: user, assistant and tool result messages. */
  convertToLlm?(messages: AgentMessage[]): Awaitable<Message[]>;
  /** Changes what the model sees in this request; the transcript stays. */
  transformContext?(messages: AgentMessage[], signal?: AbortSignal): Awaitable<AgentMessage[]>;
  /** A gate: runs after argument validation, before the tool. Its throw is an error result for the model. */
  beforeToolCall?(context: BeforeToolCallContext, signal?: AbortSignal): Awaitable<BeforeToolCallResult | undefined>;
  /** Runs in the worker that ran the tool: only the patched result leaves it. Its throw is an error result for the model. */
  afterToolCall?(context: AfterToolCallContext, signal?: AbortSignal): Awaitable<AfterToolCallResult | undefined>;
  /** Asked beside the signal queue whenever steering messages are drained. */
  getSteeringMessages?(): Awaitable<AgentMessage[]>;
  /** Asked beside the signal queue when the run would stop. */
  getFollowUpMessages?(): Awaitable<AgentMessage[]>;
}

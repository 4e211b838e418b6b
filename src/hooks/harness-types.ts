import type { Api, Model } from '@earendil-works/pi-ai';
import type { SessionTreeEntry } from '../common/entries.ts';
import type { AgentMessage, ImageContent, TextContent, Usage } from '../common/messages.ts';
import type { AskResult } from './types.ts';

/** Instructions that a prompt may pull in by name (`session.skill`), and that a system prompt may list. */
export interface Skill {
  name: string;
  description: string;
  content: string;
  /** Where relative references in the content start from. */
  filePath: string;
  /** True: not for lists that the model sees; `session.skill` still takes it. */
  disableModelInvocation?: boolean;
}

/** A prompt with placeholders: $1, ${@:N}, ${@:N:L}, $ARGUMENTS, $@ (`session.promptFromTemplate`). */
export interface PromptTemplate {
  name: string;
  description?: string;
  content: string;
}

export interface AgentHarnessResources {
  skills?: Skill[];
  promptTemplates?: PromptTemplate[];
}

/** Provider options that an agent sets and before_provider_request may patch. */
export interface AgentHarnessStreamOptions {
  transport?: 'sse' | 'websocket' | 'websocket-cached' | 'auto';
  /** Milliseconds for the HTTP request, where the provider's client knows such a limit. */
  timeoutMs?: number;
  headers?: Record<string, string>;
  metadata?: Record<string, unknown>;
  cacheRetention?: 'none' | 'short' | 'long';
}

/**
 * A key that is present sets its value, an explicit undefined clears it. Of headers and metadata single keys are merged,
 * and an undefined value deletes its key.
 */
export type AgentHarnessStreamOptionsPatch = {
  [Key in Exclude<keyof AgentHarnessStreamOptions, 'headers' | 'metadata'>]?:
    | AgentHarnessStreamOptions[Key]
    | undefined;
} & {
  headers?: Record<string, string | undefined> | undefined;
  metadata?: Record<string, unknown> | undefined;
};

export interface BeforeAgentStartEvent {
  type: 'before_agent_start';
  prompt: string;
  images?: ImageContent[];
  systemPrompt: string;
  resources: AgentHarnessResources;
}
export interface BeforeAgentStartResult {
  /** Added behind the prompt; those of several handlers are concatenated. */
  messages?: AgentMessage[];
  /** Holds for the whole run. The next handler sees it. */
  systemPrompt?: string;
}

export interface ContextEvent {
  type: 'context';
  messages: AgentMessage[];
}
export interface ContextResult {
  messages: AgentMessage[];
}

export interface ToolCallEvent {
  type: 'tool_call';
  toolCallId: string;
  toolName: string;
  /** The validated arguments. Changed in place they reach the tool so, unvalidated, as in pi. */
  input: Record<string, unknown>;
}
export interface ToolCallResult extends AskResult {
  block?: boolean;
  reason?: string;
}

export interface ToolResultEvent {
  type: 'tool_result';
  toolCallId: string;
  toolName: string;
  input: Record<string, unknown>;
  content: (TextContent | ImageContent)[];
  details: unknown;
  isError: boolean;
  usage?: Usage;
}
/** Each field that is neither undefined nor null replaces the result's; the next handler sees the patched result. */
export interface ToolResultPatch {
  content?: (TextContent | ImageContent)[];
  details?: unknown;
  isError?: boolean;
  usage?: Usage;
  terminate?: boolean;
}

/** What compaction is about to do (pi-semantics §4). The document's BranchPreparation. */
export interface BranchPreparation {
  firstKeptEntryId: string;
  messagesToSummarize: AgentMessage[];
  turnPrefixMessages: AgentMessage[];
  retainedTail: AgentMessage[];
  isSplitTurn: boolean;
  tokensBefore: number;
  previousSummary?: string;
  fileOps: { read: string[]; written: string[]; edited: string[] };
  settings: { enabled: boolean; reserveTokens: number; keepRecentTokens: number };
}
export interface CompactionResult {
  summary: string;
  firstKeptEntryId?: string;
  tokensBefore: number;
  usage?: Usage;
  retainedTail?: AgentMessage[];
  details?: unknown;
}
export interface SessionBeforeCompactEvent {
  type: 'session_before_compact';
  preparation: BranchPreparation;
  branchEntries: SessionTreeEntry[];
  customInstructions?: string;
  signal: AbortSignal;
}
export interface SessionBeforeCompactResult {
  cancel?: boolean;
  compaction?: CompactionResult;
}

export interface TreePreparation {
  targetId: string;
  oldLeafId: string | null;
  commonAncestorId: string | null;
  entriesToSummarize: SessionTreeEntry[];
  userWantsSummary: boolean;
  customInstructions?: string;
  replaceInstructions?: boolean;
  label?: string;
}
export interface SessionBeforeTreeEvent {
  type: 'session_before_tree';
  preparation: TreePreparation;
  signal: AbortSignal;
}
export interface SessionBeforeTreeResult {
  cancel?: boolean;
  summary?: { summary: string; details?: unknown; usage?: Usage };
  customInstructions?: string;
  replaceInstructions?: boolean;
}

export interface BeforeProviderRequestEvent {
  type: 'before_provider_request';
  model: Model<Api>;
  sessionId: string;
  streamOptions: AgentHarnessStreamOptions;
}
export interface BeforeProviderRequestResult {
  streamOptions?: AgentHarnessStreamOptionsPatch;
}

export interface BeforeProviderPayloadEvent {
  type: 'before_provider_payload';
  model: Model<Api>;
  /** The provider's own request body. */
  payload: unknown;
}
export interface BeforeProviderPayloadResult {
  payload: unknown;
}

/** Everturn's own: a partial result on its way to live readers. */
export interface ToolUpdateEvent {
  type: 'tool_update';
  toolCallId: string;
  toolName: string;
  partialResult: unknown;
}
/** null drops the update. */
export type ToolUpdateResult = { partialResult: unknown } | null;

export interface AgentHarnessEventMap {
  before_agent_start: BeforeAgentStartEvent;
  context: ContextEvent;
  tool_call: ToolCallEvent;
  tool_result: ToolResultEvent;
  session_before_compact: SessionBeforeCompactEvent;
  session_before_tree: SessionBeforeTreeEvent;
  before_provider_request: BeforeProviderRequestEvent;
  before_provider_payload: BeforeProviderPayloadEvent;
  tool_update: ToolUpdateEvent;
}

export interface AgentHarnessEventResultMap {
  before_agent_start: BeforeAgentStartResult;
  context: ContextResult;
  tool_call: ToolCallResult;
  tool_result: ToolResultPatch;
  session_before_compact: SessionBeforeCompactResult;
  session_before_tree: SessionBeforeTreeResult;
  before_provider_request: BeforeProviderRequestResult;
  before_provider_payload: BeforeProviderPayloadResult;
  tool_update: ToolUpdateResult;
}

export type AgentHarnessEventName = keyof AgentHarnessEventMap;

/** The events whose handlers get a signal, by the document's table. `agent.signal` works in all. */
export type SignalledEventName =
  | 'before_agent_start'
  | 'session_before_compact'
  | 'session_before_tree'
  | 'before_provider_request';

type Result<Name extends AgentHarnessEventName> = AgentHarnessEventResultMap[Name] | undefined;

/**
 * A handler of one event. `tool_update` is called between two chunks of a tool and must be synchronous; all others may be
 * async.
 */
export type AgentHarnessHandler<Name extends AgentHarnessEventName> = Name extends 'tool_update'
  ? (event: AgentHarnessEventMap[Name]) => Result<Name>
  : Name extends SignalledEventName
    ? (event: AgentHarnessEventMap[Name], signal: AbortSignal) => Result<Name> | Promise<Result<Name>>
    : (event: AgentHarnessEventMap[Name]) => Result<Name> | Promise<Result<Name>>;

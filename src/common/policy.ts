import type { ThinkingLevel } from './entries.ts';
import type { AgentMessage, AssistantMessage, ToolResultMessage } from './messages.ts';

/** A tool as policies and contexts name it. Its code stays in the worker. */
export interface ContextTool {
  name: string;
  description: string;
}

/** pi's AgentContext: what the next request is built from. */
export interface AgentContext {
  systemPrompt: string;
  messages: AgentMessage[];
  tools?: ContextTool[];
}

/** Seen by both policies after `turn_end`, in workflow code: deterministic, no I/O. */
export interface ShouldStopAfterTurnContext {
  message: AssistantMessage;
  toolResults: ToolResultMessage[];
  context: AgentContext;
  /** Every message that this run has added so far, the prompt included. */
  newMessages: AgentMessage[];
}

export type PrepareNextTurnContext = ShouldStopAfterTurnContext;

/** What changes from the next turn on. A `context` replaces what the model sees, not the transcript. */
export interface AgentLoopTurnUpdate {
  context?: AgentContext;
  /** "provider/model-id", or any object with provider and id such as pi-ai's Model. */
  model?: string | { provider: string; id: string };
  thinkingLevel?: ThinkingLevel;
}

/** pi 1.6's word at the end of a turn: `continue` asks for one more request even if nothing else does. */
export type FinishTurnDecision = { action: 'end' } | { action: 'continue' } | undefined;

/** Seen by prepareRequest before every request, the first included. */
export interface PrepareRequestContext {
  context: AgentContext;
  /** "provider/model-id" */
  model: string;
  thinkingLevel: ThinkingLevel;
}

/** The hooks that are workflow logic. They may be async, but only on what is deterministic in a workflow. */
export interface Policy {
  shouldStopAfterTurn?(context: ShouldStopAfterTurnContext): boolean | Promise<boolean>;
  prepareNextTurn?(
    context: PrepareNextTurnContext,
  ): AgentLoopTurnUpdate | undefined | Promise<AgentLoopTurnUpdate | undefined>;
  /** pi 1.6's name for shouldStopAfterTurn, with a third answer. Asked at the same point, before shouldStopAfterTurn. */
  finishTurn?(context: ShouldStopAfterTurnContext): FinishTurnDecision | Promise<FinishTurnDecision>;
  /** pi 1.6: like prepareNextTurn, but asked before every request. What it returns stays for later ones. */
  prepareRequest?(
    context: PrepareRequestContext,
  ): AgentLoopTurnUpdate | undefined | Promise<AgentLoopTurnUpdate | undefined>;
}

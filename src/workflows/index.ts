/** Workflow code: may be loaded in Temporal's sandbox. A workflows file re-exports it and defines policies beside. */
export type { EarlyTerminationOptions } from '../common/early-termination.ts';
export { earlyTermination } from '../common/early-termination.ts';
export { estimateTokens } from '../common/estimate-tokens.ts';
export type { AgentMessage, AssistantMessage, ToolResultMessage } from '../common/messages.ts';
export { textOf, toolCallsOf } from '../common/messages.ts';
export type {
  AgentContext,
  AgentLoopTurnUpdate,
  ContextTool,
  FinishTurnDecision,
  Policy,
  PrepareNextTurnContext,
  PrepareRequestContext,
  ShouldStopAfterTurnContext,
} from '../common/policy.ts';
export { definePolicy } from './policies.ts';
export { agentSession } from './session.ts';

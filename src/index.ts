/** What an agent file needs: definitions and their types. Workers, clients and workflows have entries of their own. */

export type { Agent, AgentOptions, HookInstaller, StreamSettings, SystemPromptContext } from './agent/agent.ts';
export { defineAgent } from './agent/agent.ts';
export { openAICompatible } from './agent/openai-compatible.ts';
export type { PiAgentTool, PiToolOptions } from './agent/pi-tool.ts';
export { fromPiTool } from './agent/pi-tool.ts';
export type { Tool, ToolContext, ToolOptions, ToolReturn } from './agent/tool.ts';
export { defineTool, RetryableToolError } from './agent/tool.ts';
export type { SessionTreeEntry, ThinkingLevel } from './common/entries.ts';
export type { ErrorCode, ErrorInfo } from './common/errors.ts';
export { EverturnError, isEverturnError } from './common/errors.ts';
export { estimateTokens } from './common/estimate-tokens.ts';
export type { LogRecord, RunStatus, SessionEvent, StreamDelta, ToolOutcome, ToolOutcomeKind } from './common/events.ts';
export type {
  AgentMessage,
  AssistantMessage,
  CustomAgentMessages,
  ImageContent,
  Message,
  MessageInput,
  TextContent,
  ThinkingContent,
  ToolCall,
  ToolResultMessage,
  Usage,
  UserMessage,
} from './common/messages.ts';
export { textOf, toolCallsOf } from './common/messages.ts';
export type { AgentContext, AgentLoopTurnUpdate, ShouldStopAfterTurnContext } from './common/policy.ts';
export type { UsageTotals } from './common/usage.ts';
export { currentSession } from './hooks/current-signal.ts';
export { NonRetryableHookError } from './hooks/errors.ts';
export type {
  AgentHarnessEventMap,
  AgentHarnessEventName,
  AgentHarnessEventResultMap,
  AgentHarnessHandler,
  AgentHarnessResources,
  AgentHarnessStreamOptions,
  AgentHarnessStreamOptionsPatch,
  BeforeAgentStartEvent,
  BeforeAgentStartResult,
  BeforeProviderPayloadEvent,
  BeforeProviderPayloadResult,
  BeforeProviderRequestEvent,
  BeforeProviderRequestResult,
  BranchPreparation,
  CompactionResult,
  ContextEvent,
  ContextResult,
  PromptTemplate,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionBeforeTreeEvent,
  SessionBeforeTreeResult,
  Skill,
  ToolCallEvent,
  ToolCallResult,
  ToolResultEvent,
  ToolResultPatch,
  ToolUpdateEvent,
  ToolUpdateResult,
  TreePreparation,
} from './hooks/harness-types.ts';
export type { AuditLogOptions, AuditRecord } from './hooks/ready/audit-log.ts';
export { auditLog } from './hooks/ready/audit-log.ts';
export type { ContextWindowOptions } from './hooks/ready/context-window.ts';
export { contextWindow } from './hooks/ready/context-window.ts';
export type { Pattern } from './hooks/ready/patterns.ts';
export type { Permission, PermissionGateOptions, PermissionRule } from './hooks/ready/permission-gate.ts';
export { permissionGate } from './hooks/ready/permission-gate.ts';
export type { RateLimitOptions } from './hooks/ready/rate-limit.ts';
export { rateLimit } from './hooks/ready/rate-limit.ts';
export type { RedactSecretsOptions } from './hooks/ready/redact-secrets.ts';
export { redactSecrets, secretRedactor } from './hooks/ready/redact-secrets.ts';
export type { RedactorOptions } from './hooks/ready/redactor.ts';
export type {
  AfterToolCallContext,
  AfterToolCallResult,
  AgentHookName,
  AgentHooks,
  AgentToolCall,
  AgentToolResult,
  AskResult,
  BeforeToolCallContext,
  BeforeToolCallResult,
  HookSettings,
} from './hooks/types.ts';
export type { OpenStoreOptions, Store } from './store/index.ts';
export { openStore } from './store/index.ts';

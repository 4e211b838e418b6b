import { EverturnError } from '../common/errors.ts';
import type { ReplayKind } from '../common/manifest.ts';
import type { JsonObject } from '../common/messages.ts';
import type { AgentToolResult } from '../hooks/types.ts';
import type { Tool, ToolReturn } from './tool.ts';

/** pi's AgentTool (pi-agent-core 0.83 to 1.6), as far as it is called: parameters are JSON Schema, TypeBox or pi-schema. */
export interface PiAgentTool {
  name: string;
  label?: string;
  description: string;
  parameters: object;
  executionMode?: 'sequential' | 'parallel';
  replay?: 'never' | 'safe';
  // biome-ignore lint/suspicious/noExplicitAny: pi types the arguments per tool, and a list of tools has them all
  prepareArguments?(args: any): unknown;
  execute(
    toolCallId: string,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    params: any,
    signal?: AbortSignal,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    onUpdate?: (partial: any) => void,
  ): Promise<unknown>;
}

export interface PiToolOptions {
  /** Default: what the tool says, else `never`. */
  replay?: ReplayKind;
  /** Milliseconds. Default: 10 minutes. */
  timeoutMs?: number;
  /** Milliseconds. Default: 3,000, and 15,000 for `never`. */
  heartbeatTimeoutMs?: number;
  taskQueue?: string;
}

/**
 * A tool made for pi, unchanged: its validation is pi's own, its updates are streamed, `isError` and `terminate` count.
 * What a durable tool needs besides, its replay kind above all, is given here.
 * @throws EverturnError `invalid_config`
 */
export function fromPiTool(tool: PiAgentTool, options: PiToolOptions = {}): Tool {
  if (typeof tool?.execute !== 'function' || typeof tool.parameters !== 'object' || typeof tool.name !== 'string') {
    throw new EverturnError(
      'invalid_config',
      `fromPiTool: ${String(tool?.name)} is no pi tool: it needs name, parameters and execute.`,
    );
  }
  const replay = options.replay ?? tool.replay ?? 'never';
  return {
    name: tool.name,
    description: tool.description,
    label: tool.label ?? tool.name,
    schema: undefined,
    // Symbols and functions that schema builders leave on their objects do not reach the provider.
    parameters: JSON.parse(JSON.stringify(tool.parameters)) as JsonObject,
    replay,
    timeoutMs: options.timeoutMs ?? 600_000,
    executionMode: tool.executionMode ?? 'parallel',
    taskQueue: options.taskQueue,
    local: false,
    heartbeatTimeoutMs: options.heartbeatTimeoutMs ?? (replay === 'never' ? 15_000 : 3_000),
    prepareArguments: tool.prepareArguments === undefined ? undefined : (raw) => tool.prepareArguments?.(raw),
    execute: async (args, context) => {
      const onUpdate = (partial: AgentToolResult) => context.onUpdate(partial);
      return (await tool.execute(context.toolCallId, args, context.signal, onUpdate)) as ToolReturn;
    },
    reconcile: undefined,
  };
}

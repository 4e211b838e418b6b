import { z } from 'zod';
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
  prepareArguments?: ((args: any) => unknown) | undefined;
  execute(
    toolCallId: string,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    params: any,
    signal?: AbortSignal,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    onUpdate?: (partial: any) => void,
    // biome-ignore lint/suspicious/noExplicitAny: as above
    context?: any,
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
  /** What tools of pi's harness get as their fifth argument, such as `{ env }`; a function is asked for it at each call. */
  toolContext?: unknown;
}

const milliseconds = z.number().int().positive();
const optionsSchema = z.strictObject({
  replay: z.enum(['never', 'safe', 'keyed']).exactOptional(),
  timeoutMs: milliseconds.default(600_000),
  heartbeatTimeoutMs: milliseconds.min(1_000).exactOptional(),
  taskQueue: z.string().min(1).exactOptional(),
  toolContext: z.unknown().optional(),
});
const toolSchema = z.looseObject({
  name: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, _ or -, and begin with a letter'),
  description: z.string(),
  parameters: z.looseObject({}),
  execute: z.custom((value) => typeof value === 'function', 'must be a function'),
  executionMode: z.enum(['sequential', 'parallel']).optional(),
  replay: z.enum(['never', 'safe']).optional(),
});

/**
 * A tool made for pi, unchanged: its arguments are validated as pi does, its updates are streamed, `isError` and
 * `terminate` count. What a durable tool needs besides, its replay kind above all, is given here. Of a result, what only
 * pi's own programs read (`structuredContent`, `addedToolNames`) is left out; `outputSchema` and `constrainedSampling` of
 * the tool are not used.
 * @throws EverturnError `invalid_config`
 */
export function fromPiTool(tool: PiAgentTool, options: PiToolOptions = {}): Tool {
  check(tool, toolSchema, `${String(tool?.name)} is no pi tool`);
  const { toolContext, timeoutMs, taskQueue, ...own } = check(options, optionsSchema, `options of ${tool.name}`);
  const replay = own.replay ?? tool.replay ?? 'never';
  const { prepareArguments } = tool;
  return {
    name: tool.name,
    description: tool.description,
    label: tool.label ?? tool.name,
    schema: undefined,
    // Symbols and functions that schema builders leave on their objects do not reach the provider.
    parameters: JSON.parse(JSON.stringify(tool.parameters)) as JsonObject,
    replay,
    timeoutMs,
    executionMode: tool.executionMode ?? 'parallel',
    taskQueue,
    local: false,
    heartbeatTimeoutMs: own.heartbeatTimeoutMs ?? (replay === 'never' ? 15_000 : 3_000),
    prepareArguments: prepareArguments === undefined ? undefined : (raw) => prepareArguments.call(tool, raw),
    execute: async (args, { toolCallId, signal, onUpdate }) => {
      let open = true;
      // As in pi: what comes after the result is no longer an update.
      const update = (partial: AgentToolResult) => {
        if (open) onUpdate(partial);
      };
      try {
        const context: unknown = typeof toolContext === 'function' ? await toolContext() : toolContext;
        return withoutExtras(await tool.execute(toolCallId, args, signal, update, context));
      } finally {
        open = false;
      }
    },
    reconcile: undefined,
  };
}

/** pi's programs read these; a large one must not count against the limit of what the model gets. */
function withoutExtras(result: unknown): ToolReturn {
  if (typeof result !== 'object' || result === null) return result as ToolReturn;
  const { structuredContent: _, addedToolNames: __, ...rest } = result as Record<string, unknown>;
  return rest as unknown as ToolReturn;
}

function check<Schema extends z.ZodType>(value: unknown, schema: Schema, what: string): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const where = issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : issue?.path.join('.');
  throw new EverturnError(
    'invalid_config',
    `fromPiTool: ${what}: ${[where, issue?.message].filter(Boolean).join(': ')}`,
  );
}

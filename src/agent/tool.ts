import { z } from 'zod';
import { EverturnError } from '../common/errors.ts';
import type { Json } from '../common/json.ts';
import type { ReplayKind } from '../common/manifest.ts';
import type { JsonObject } from '../common/messages.ts';
import type { AgentToolResult } from '../hooks/types.ts';

export interface ToolContext {
  sessionId: string;
  runId: string;
  toolCallId: string;
  /** The same for every attempt of this call, and for no other: hand it to systems that dedupe by key. */
  idempotencyKey: string;
  /** 1 at first; higher when a worker died in an earlier entry. */
  attempt: number;
  /** What the last entry reported by `progress`, when it was lost. */
  lastProgress?: Json;
  /** Fires on abort, on the timeout, and on worker shutdown. After it a tool has 5 s to return. */
  signal: AbortSignal;
  /** Shows a partial result to live readers. Never stored in the transcript. */
  onUpdate(partial: AgentToolResult): void;
  /** Keeps a small note that survives a crash of this worker; the model is told it when the outcome is unknown. */
  progress(note: Json): Promise<void>;
}

/** What a tool may return: a text, or pi's result. `isError: true` marks a failure without throwing. */
export type ToolReturn = string | (AgentToolResult & { isError?: boolean });

export interface ToolOptions<Schema extends z.ZodObject> {
  /** What the model calls: letters, digits, _ and -. */
  name: string;
  description: string;
  /** For people. Default: the name. */
  label?: string;
  parameters: Schema;
  /**
   * What may happen when a worker dies after the tool was entered. `never` (default): it is not entered again, the
   * model is told that the outcome is unknown. `safe`: it is run again. `keyed`: run again with the same idempotencyKey.
   */
  replay?: ReplayKind;
  /** Milliseconds that one execution may take; then its signal fires and the call is an error. Default: 10 minutes. */
  timeoutMs?: number;
  /** `sequential`: a message that calls this tool runs all of its calls one after the other. Default: parallel. */
  executionMode?: 'sequential' | 'parallel';
  /** Task queue of the workers that have this tool. Default: the session's. */
  taskQueue?: string;
  /** Runs as a local activity (about 2 ms, no heartbeat): for quick pure `safe` tools only. Default: false. */
  local?: boolean;
  /**
   * Milliseconds of silence after which the worker counts as lost. Default: 3,000, and 15,000 for `never` (a tool that
   * blocks the event loop longer than this is reported lost although it may complete).
   */
  heartbeatTimeoutMs?: number;
  /** Changes raw arguments before they are validated, for models that get a shape wrong. */
  prepareArguments?(raw: JsonObject): unknown;
  execute(args: z.output<Schema>, context: ToolContext): ToolReturn | Promise<ToolReturn>;
  /** Of `never` tools: finds out what became of a call whose worker died. undefined: still unknown. */
  reconcile?(
    args: z.output<Schema>,
    context: Pick<ToolContext, 'sessionId' | 'runId' | 'toolCallId' | 'idempotencyKey' | 'signal' | 'lastProgress'>,
  ): ToolReturn | undefined | Promise<ToolReturn | undefined>;
}

/** A tool with its defaults filled in and its schema as JSON Schema. */
export interface Tool {
  name: string;
  description: string;
  label: string;
  /** undefined: `parameters` alone decides what arguments are valid (pi's tools). */
  schema: z.ZodObject | undefined;
  /** JSON Schema of the arguments, as the provider gets it. */
  parameters: JsonObject;
  replay: ReplayKind;
  timeoutMs: number;
  executionMode: 'sequential' | 'parallel';
  taskQueue: string | undefined;
  local: boolean;
  heartbeatTimeoutMs: number;
  prepareArguments: ((raw: JsonObject) => unknown) | undefined;
  execute(args: unknown, context: ToolContext): Promise<ToolReturn>;
  reconcile: ((args: unknown, context: ReconcileContext) => Promise<ToolReturn | undefined>) | undefined;
}

export type ReconcileContext = Pick<
  ToolContext,
  'sessionId' | 'runId' | 'toolCallId' | 'idempotencyKey' | 'signal' | 'lastProgress'
>;

const minute = 60_000;
const duration = z
  .number()
  .int()
  .min(1)
  .max(7 * 24 * 60 * minute);

const optionsSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, 'must be 1 to 64 letters, digits, _ or -, and begin with a letter'),
  description: z.string().min(1, 'is what the model reads: it cannot be empty'),
  label: z.string().exactOptional(),
  parameters: z.instanceof(z.ZodObject, { error: 'must be a z.object(…)' }),
  replay: z.enum(['never', 'safe', 'keyed']).default('never'),
  timeoutMs: duration.default(10 * minute),
  executionMode: z.enum(['sequential', 'parallel']).default('parallel'),
  taskQueue: z.string().min(1).exactOptional(),
  local: z.boolean().default(false),
  heartbeatTimeoutMs: duration.min(1_000).exactOptional(),
  prepareArguments: z.custom<(raw: JsonObject) => unknown>(isFunction, 'must be a function').exactOptional(),
  execute: z.custom<Tool['execute']>(isFunction, 'must be a function'),
  reconcile: z.custom<NonNullable<Tool['reconcile']>>(isFunction, 'must be a function').exactOptional(),
});

/**
 * Defines a tool. All options are checked here, when the worker's code loads.
 * @throws EverturnError `invalid_config` that names the tool and the option
 */
export function defineTool<Schema extends z.ZodObject>(options: ToolOptions<Schema>): Tool {
  const parsed = optionsSchema.safeParse(options);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw invalid(String(options?.name), `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'invalid'}`);
  }
  const tool = parsed.data;
  if (tool.local && tool.replay !== 'safe') {
    throw invalid(
      tool.name,
      'local: only a tool with replay "safe" may be local, since a local activity may run twice',
    );
  }
  if (tool.local && tool.taskQueue !== undefined)
    throw invalid(tool.name, 'local: a local tool has no task queue of its own');
  return {
    name: tool.name,
    description: tool.description,
    label: tool.label ?? tool.name,
    schema: tool.parameters,
    parameters: toJsonSchema(tool.name, tool.parameters),
    replay: tool.replay,
    timeoutMs: tool.timeoutMs,
    executionMode: tool.executionMode,
    taskQueue: tool.taskQueue,
    local: tool.local,
    heartbeatTimeoutMs: tool.heartbeatTimeoutMs ?? (tool.replay === 'never' ? 15_000 : 3_000),
    prepareArguments: tool.prepareArguments,
    execute: async (args, context) => tool.execute(args, context),
    reconcile: tool.reconcile,
  };
}

/** Thrown by a tool that did nothing yet and wants to be tried again: 3 entries in all, with growing delays. */
export class RetryableToolError extends Error {
  /** Milliseconds to wait. Default: 500, doubled for each further try. */
  readonly delayMs: number | undefined;

  constructor(message: string, options: { delayMs?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'RetryableToolError';
    this.delayMs = options.delayMs;
  }
}

function toJsonSchema(name: string, schema: z.ZodObject): JsonObject {
  try {
    const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: 'input', target: 'draft-7' });
    return rest as JsonObject;
  } catch (error) {
    throw invalid(name, `parameters: cannot be written as JSON Schema (${(error as Error).message}); use plain types`);
  }
}

function isFunction(value: unknown): boolean {
  return typeof value === 'function';
}

function invalid(name: string, what: string): EverturnError {
  return new EverturnError('invalid_config', `Tool "${name}": ${what}`, { details: { tool: name } });
}

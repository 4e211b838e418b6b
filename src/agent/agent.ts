import { z } from 'zod';
import { type ThinkingLevel, thinkingLevels } from '../common/entries.ts';
import { EverturnError } from '../common/errors.ts';
import { idSchema, modelRefSchema, type QueueMode, queueModes } from '../common/signals.ts';
import { currentSignal } from '../hooks/current-signal.ts';
import type {
  AgentHarnessEventName,
  AgentHarnessHandler,
  AgentHarnessResources,
  AgentHarnessStreamOptions,
} from '../hooks/harness-types.ts';
import { HookRegistry, hookSettingsSchema } from '../hooks/registry.ts';
import type { AgentHookName, AgentHooks, HookSettings } from '../hooks/types.ts';
import type { Tool } from './tool.ts';

export interface SystemPromptContext {
  sessionId: string;
  /** "provider/model-id" */
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[];
}

/** Options that go to the provider with every request. */
export interface StreamSettings extends AgentHarnessStreamOptions {
  temperature?: number;
  maxTokens?: number;
}

/** Installs hooks on an agent; returns what takes them away again. Ready-made ones are of this shape. */
export type HookInstaller = (agent: Pick<Agent, 'on'>) => () => void;

export interface AgentOptions extends AgentHooks {
  /** Names the agent in sessions: letters, digits and . _ : @ - */
  name: string;
  /** "provider/model-id", of pi-ai's catalog or of the worker's own `models`. */
  model: string;
  /** Default: off. */
  thinkingLevel?: ThinkingLevel;
  /** A text, or a function that makes it before each request. Default: "You are a helpful assistant." */
  systemPrompt?: string | ((context: SystemPromptContext) => string | Promise<string>);
  tools?: readonly Tool[];
  /** Names of the tools that a new session begins with. Default: all. */
  activeTools?: readonly string[];
  /** Default: parallel. A called tool with executionMode "sequential" makes its batch sequential. */
  toolExecution?: 'sequential' | 'parallel';
  /** Default: one-at-a-time. */
  steeringMode?: QueueMode;
  /** Default: one-at-a-time. */
  followUpMode?: QueueMode;
  streamOptions?: StreamSettings;
  /** Skills and prompt templates that prompts may use by name. */
  resources?: AgentHarnessResources;
  /** How the hooks given here are run. Handlers of `on` have settings of their own. */
  hookSettings?: Partial<Record<AgentHookName, HookSettings>>;
  /** Hooks to install, in this order: ready-made ones, or functions that call `agent.on`. */
  use?: readonly HookInstaller[];
  /** Retries of a model request that failed for a passing reason. */
  retry?: {
    /** Attempts in all. Default: 8. */
    maxAttempts?: number;
    /** Milliseconds before the second attempt, doubled each time up to a minute; Retry-After wins. Default: 1,000. */
    baseDelayMs?: number;
  };
  /** Milliseconds without any event from the provider after which a request counts as stalled. Default: 120,000. */
  stallTimeoutMs?: number;
  /** Milliseconds that one model request may take in all. Default: one hour. */
  modelTimeoutMs?: number;
  /** Turns after which a run ends with an error. Default: 1,000. */
  maxTurns?: number;
  /** Milliseconds that the workflow stays up after its last run. Default: 60,000. */
  lingerMs?: number;
}

export interface Agent extends AgentHooks {
  readonly name: string;
  readonly model: string;
  readonly thinkingLevel: ThinkingLevel;
  readonly systemPrompt: string | ((context: SystemPromptContext) => string | Promise<string>);
  readonly tools: readonly Tool[];
  readonly activeTools: readonly string[] | null;
  readonly toolExecution: 'sequential' | 'parallel';
  readonly steeringMode: QueueMode;
  readonly followUpMode: QueueMode;
  readonly streamOptions: StreamSettings;
  readonly resources: AgentHarnessResources;
  readonly hookSettings: Partial<Record<AgentHookName, HookSettings>>;
  readonly registry: HookRegistry;
  /** The signal of the effect that runs the calling hook or tool; undefined outside of one. */
  readonly signal: AbortSignal | undefined;
  /** Registers a handler of the harness layer, in subscription order. Returns what takes it away again. */
  on<Name extends AgentHarnessEventName>(
    name: Name,
    handler: AgentHarnessHandler<Name>,
    settings?: HookSettings,
  ): () => void;
  readonly retry: { maxAttempts: number; baseDelayMs: number };
  readonly stallTimeoutMs: number;
  readonly modelTimeoutMs: number;
  readonly maxTurns: number;
  readonly lingerMs: number;
}

const fn = z
  .custom<(...args: never[]) => unknown>((value) => typeof value === 'function', 'must be a function')
  .exactOptional();
const milliseconds = z.number().int().positive();

const agentHooks = [
  'convertToLlm',
  'transformContext',
  'beforeToolCall',
  'afterToolCall',
  'getSteeringMessages',
  'getFollowUpMessages',
] as const satisfies readonly AgentHookName[];

const resourceName = z.string().min(1, 'needs a name');
const resourcesSchema = z.strictObject({
  skills: z
    .array(
      z.looseObject({
        name: resourceName,
        description: z.string(),
        content: z.string(),
        filePath: z.string(),
        disableModelInvocation: z.boolean().exactOptional(),
      }),
    )
    .exactOptional(),
  promptTemplates: z
    .array(z.looseObject({ name: resourceName, description: z.string().exactOptional(), content: z.string() }))
    .exactOptional(),
});

const optionsSchema = z.strictObject({
  name: idSchema,
  model: modelRefSchema,
  thinkingLevel: z.enum(thinkingLevels).default('off'),
  systemPrompt: z
    .union([
      z.string(),
      z.custom<() => string>((value) => typeof value === 'function', 'must be a string or a function'),
    ])
    .default('You are a helpful assistant.'),
  tools: z
    .array(
      z.custom<Tool>(
        (value) => typeof (value as Tool)?.execute === 'function' && 'replay' in (value as Tool),
        'must be made with defineTool',
      ),
    )
    .default([]),
  activeTools: z.array(z.string()).exactOptional(),
  toolExecution: z.enum(['sequential', 'parallel']).default('parallel'),
  steeringMode: z.enum(queueModes).default('one-at-a-time'),
  followUpMode: z.enum(queueModes).default('one-at-a-time'),
  streamOptions: z
    .strictObject({
      temperature: z.number().exactOptional(),
      maxTokens: z.number().int().positive().exactOptional(),
      transport: z.enum(['sse', 'websocket', 'websocket-cached', 'auto']).exactOptional(),
      timeoutMs: z.number().int().positive().exactOptional(),
      headers: z.record(z.string(), z.string()).exactOptional(),
      metadata: z.record(z.string(), z.unknown()).exactOptional(),
      cacheRetention: z.enum(['none', 'short', 'long']).exactOptional(),
    })
    .default({}),
  resources: resourcesSchema.default({}),
  hookSettings: z.partialRecord(z.enum(agentHooks), hookSettingsSchema).default({}),
  use: z.array(z.custom<HookInstaller>((value) => typeof value === 'function', 'must be a function')).default([]),
  retry: z
    .strictObject({
      maxAttempts: z.number().int().min(1).max(100).default(8),
      baseDelayMs: milliseconds.default(1_000),
    })
    .prefault({}),
  stallTimeoutMs: milliseconds.default(120_000),
  modelTimeoutMs: milliseconds.default(3_600_000),
  maxTurns: z.number().int().positive().default(1_000),
  lingerMs: z.number().int().min(0).default(60_000),
  convertToLlm: fn,
  transformContext: fn,
  beforeToolCall: fn,
  afterToolCall: fn,
  getSteeringMessages: fn,
  getFollowUpMessages: fn,
});

/**
 * Defines an agent: data and functions, shared by all of its sessions. Everything is checked here.
 * @throws EverturnError `invalid_config` that names the agent and the option
 */
export function defineAgent(options: AgentOptions): Agent {
  const parsed = optionsSchema.safeParse(options);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : issue?.path.join('.');
    throw invalid(options, `${where}: ${issue?.message}${hint(where)}`);
  }
  const names = parsed.data.tools.map((tool) => tool.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalid(options, `tools: two tools are called "${twice}"`);
  const unknown = parsed.data.activeTools?.find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw invalid(options, `activeTools: there is no tool "${unknown}", there are: ${names.join(', ') || 'none'}`);
  const { use, ...data } = parsed.data;
  const registry = new HookRegistry();
  const agent = Object.freeze({
    ...data,
    activeTools: data.activeTools ?? null,
    registry,
    on: registry.on.bind(registry),
    get signal() {
      return currentSignal();
    },
  }) as unknown as Agent;
  for (const install of use) install(agent);
  return agent;
}

function hint(where: string | undefined): string {
  return where === 'shouldStopAfterTurn' || where === 'prepareNextTurn'
    ? '. It is workflow logic: give it to definePolicy in your workflows file'
    : '';
}

function invalid(options: AgentOptions, what: string): EverturnError {
  const name = String((options as { name?: unknown } | undefined)?.name);
  return new EverturnError('invalid_config', `Agent "${name}": ${what}`, { details: { agent: name } });
}

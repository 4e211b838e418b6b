import { z } from 'zod';
import { type ThinkingLevel, thinkingLevels } from './entries.ts';
import type { RunStatus } from './events.ts';
import type { AgentMessage, MessageInput } from './messages.ts';
import type { UsageTotals } from './usage.ts';

/** Type name of the workflow, and names of its signals, updates and queries: the interface for callers by hand. */
export const workflowType = 'agentSession';
export const defaultTaskQueue = 'everturn';
export const signalNames = { steer: 'steer', followUp: 'followUp', nextTurn: 'nextTurn', abort: 'abort' } as const;
export const updateNames = {
  prompt: 'prompt',
  setModel: 'setModel',
  setThinkingLevel: 'setThinkingLevel',
  setActiveTools: 'setActiveTools',
  setQueueMode: 'setQueueMode',
} as const;
export const queryNames = { status: 'status', leaf: 'leaf', queues: 'queues', counts: 'counts' } as const;

/** How many queued messages one drain takes. Read at the moment of the drain, as in pi. */
export const queueModes = ['all', 'one-at-a-time'] as const;
export type QueueMode = (typeof queueModes)[number];

const idPattern = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}$/;
export const idSchema = z
  .string()
  .regex(idPattern, 'must be 1 to 200 letters, digits or . _ : @ -, and begin with a letter or digit');
export const modelRefSchema = z.string().regex(/^[^/\s]+\/\S+$/, 'must be "provider/model-id"');
export const thinkingLevelSchema = z.enum(thinkingLevels);

/** What to do with a prompt while a run is going on. */
export const onBusyChoices = ['reject', 'steer', 'followUp', 'interrupt'] as const;
export type OnBusy = (typeof onBusyChoices)[number];

/** Input of the workflow. By hand: `--input '{"agent":"coder"}'`. Settings count only for a session that is new. */
export const sessionInputSchema = z.strictObject({
  agent: idSchema,
  model: modelRefSchema.exactOptional(),
  thinkingLevel: thinkingLevelSchema.exactOptional(),
  activeTools: z.array(z.string()).exactOptional(),
  /** Set by continue-as-new alone. */
  carry: z.unknown().exactOptional(),
});
export type SessionInput = z.infer<typeof sessionInputSchema>;

/** A prompt whose text the agent's resources have. */
export const promptByNameSchema = z.union([
  z.strictObject({ skill: z.string().min(1), instructions: z.string().exactOptional() }),
  z.strictObject({ template: z.string().min(1), args: z.array(z.string()).default([]) }),
]);
export type PromptByName = z.output<typeof promptByNameSchema>;

export interface PromptInput {
  runId: string;
  message: MessageInput | PromptByName;
  /** The agent that the caller means: another one is an error. */
  agent?: string;
  onBusy: OnBusy;
}

export const promptInputSchema = z.strictObject({
  runId: idSchema,
  message: z.unknown(),
  agent: idSchema.exactOptional(),
  onBusy: z.enum(onBusyChoices).default('reject'),
});

/** What became of a prompt. `runId` is the run that the message opened or joined. */
export interface PromptAnswer {
  became: 'opened' | 'steered' | 'queued';
  runId: string;
}

export const abortSchema = z.union([z.undefined(), z.null(), z.strictObject({ runId: idSchema.exactOptional() })]);

export interface SessionStatus {
  phase: 'opening' | 'idle' | 'running' | 'aborting';
  runId?: string;
  turn?: number;
  /** Runs that are accepted and have not begun. */
  waiting: string[];
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[] | null;
  epoch: number;
  lastRun?: { runId: string; status: RunStatus };
}

export interface SessionQueues {
  steer: AgentMessage[];
  followUp: AgentMessage[];
  nextTurn: AgentMessage[];
  steeringMode: QueueMode;
  followUpMode: QueueMode;
}

/** Counts since the workflow run began. */
export interface SessionCounts {
  runs: number;
  turns: number;
  effects: number;
  rejectedSignals: number;
  usage: UsageTotals;
}

import type { QueueMode } from './signals.ts';

export type ReplayKind = 'never' | 'safe' | 'keyed';

/** What the workflow must know of a tool to schedule it. */
export interface ToolManifest {
  name: string;
  description: string;
  replay: ReplayKind;
  executionMode: 'sequential' | 'parallel';
  /** Milliseconds that one execution may take. */
  timeoutMs: number;
  /** Milliseconds after which a silent worker counts as lost. */
  heartbeatTimeoutMs: number;
  taskQueue?: string;
  /** Runs as a local activity: only for quick `safe` tools. */
  local: boolean;
}

/** Which hooks an agent has: what is not registered costs nothing. */
export interface HookManifest {
  beforeToolCall: boolean;
  getSteeringMessages: boolean;
  getFollowUpMessages: boolean;
}

/**
 * An agent as the workflow sees it. It comes with `openSession` and so stands in the history: a replay decides alike,
 * whatever the worker's code says by then.
 */
export interface AgentManifest {
  agent: string;
  /** Digest of all below. */
  hash: string;
  tools: ToolManifest[];
  hooks: HookManifest;
  toolExecution: 'sequential' | 'parallel';
  steeringMode: QueueMode;
  followUpMode: QueueMode;
  /** Turns after which a run ends with an error. */
  maxTurns: number;
  /** Milliseconds that one model request may take in all. */
  modelTimeoutMs: number;
  /** Milliseconds that the workflow stays up after its last run. */
  lingerMs: number;
}

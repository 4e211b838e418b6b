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

/** A gate: how many handlers it has, and whether all of them may run in a local activity. */
export interface GateManifest {
  handlers: number;
  local: boolean;
}

/** Which hooks cost an activity of their own: what is not registered costs nothing. */
export interface HookManifest {
  /** The handlers of before_agent_start. */
  beforeAgentStart: GateManifest | null;
  /** beforeToolCall and the handlers of tool_call. */
  beforeToolCall: GateManifest | null;
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
  skills: string[];
  promptTemplates: string[];
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

import { createHash } from 'node:crypto';
import { canonicalJson } from '../common/json.ts';
import type { AgentManifest } from '../common/manifest.ts';
import type { Agent } from './agent.ts';

/** What the workflow decides on, taken from the worker's code once per workflow run. */
export function manifestOf(agent: Agent): AgentManifest {
  const facts: Omit<AgentManifest, 'hash'> = {
    agent: agent.name,
    tools: agent.tools.map((tool) => ({
      name: tool.name,
      description: tool.description,
      replay: tool.replay,
      executionMode: tool.executionMode,
      timeoutMs: tool.timeoutMs,
      heartbeatTimeoutMs: tool.heartbeatTimeoutMs,
      ...(tool.taskQueue === undefined ? {} : { taskQueue: tool.taskQueue }),
      local: tool.local,
    })),
    hooks: {
      beforeToolCall: agent.beforeToolCall !== undefined,
      getSteeringMessages: agent.getSteeringMessages !== undefined,
      getFollowUpMessages: agent.getFollowUpMessages !== undefined,
    },
    toolExecution: agent.toolExecution,
    steeringMode: agent.steeringMode,
    followUpMode: agent.followUpMode,
    maxTurns: agent.maxTurns,
    modelTimeoutMs: agent.modelTimeoutMs,
    lingerMs: agent.lingerMs,
  };
  return { ...facts, hash: createHash('sha256').update(canonicalJson(facts)).digest('hex') };
}

import { hash } from 'node:crypto';
import { canonicalJson } from '../common/json.ts';
import type { AgentManifest, GateManifest } from '../common/manifest.ts';
import type { HookSettings } from '../hooks/types.ts';
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
      beforeAgentStart: gateOf(agent, 'before_agent_start', undefined),
      beforeToolCall: gateOf(
        agent,
        'tool_call',
        agent.beforeToolCall === undefined ? undefined : (agent.hookSettings.beforeToolCall ?? {}),
      ),
      getSteeringMessages: agent.getSteeringMessages !== undefined,
      getFollowUpMessages: agent.getFollowUpMessages !== undefined,
    },
    skills: (agent.resources.skills ?? []).map((skill) => skill.name),
    promptTemplates: (agent.resources.promptTemplates ?? []).map((template) => template.name),
    toolExecution: agent.toolExecution,
    steeringMode: agent.steeringMode,
    followUpMode: agent.followUpMode,
    maxTurns: agent.maxTurns,
    modelTimeoutMs: agent.modelTimeoutMs,
    lingerMs: agent.lingerMs,
  };
  return { ...facts, hash: hash('sha256', canonicalJson(facts), 'hex') };
}

/** @param own settings of the agent-layer hook of this gate, if the agent has it */
function gateOf(
  agent: Agent,
  event: 'before_agent_start' | 'tool_call',
  own: HookSettings | undefined,
): GateManifest | null {
  const settings = [
    ...(own === undefined ? [] : [own]),
    ...agent.registry.handlers(event).map((entry) => entry.settings),
  ];
  return settings.length === 0
    ? null
    : { handlers: settings.length, local: settings.every(({ local }) => local === true) };
}

/** Handlers before a tool call that the code of this worker has. */
export function gateHandlers(agent: Agent): number {
  return agent.registry.known('tool_call') + (agent.beforeToolCall === undefined ? 0 : 1);
}

import type { Agent, AgentOptions } from 'everturn';
import { echoAgent } from '../agents.ts';

type HarnessEvent = Parameters<Agent['on']>[0];

/** Each hook as it costs least: it looks, and changes nothing. What is measured is how it is called. */
const agentLayer: { [Name in keyof AgentOptions]?: Pick<AgentOptions, Name> } = {
  convertToLlm: { convertToLlm: (messages) => messages as never },
  transformContext: { transformContext: (messages) => messages },
  beforeToolCall: { beforeToolCall: () => undefined },
  afterToolCall: { afterToolCall: () => undefined },
  getSteeringMessages: { getSteeringMessages: () => [] },
  getFollowUpMessages: { getFollowUpMessages: () => [] },
};

const harnessLayer: readonly HarnessEvent[] = [
  'before_agent_start',
  'context',
  'tool_call',
  'tool_result',
  'before_provider_request',
  'before_provider_payload',
  'tool_update',
  'session_before_compact',
  'session_before_tree',
];

/** Hooks that are workflow code: workflows.ts gives them to the agents of the same names. */
const policies = ['shouldStopAfterTurn', 'prepareNextTurn'];

/** Agents by the hook that they have. `none` has none; `all` has all, each in its most expensive form: no gate is local. */
export function hookAgents(): Agent[] {
  return [
    echoAgent('none'),
    ...Object.entries(agentLayer).map(([name, hook]) => echoAgent(name, hook)),
    ...harnessLayer.map((event) => listening(echoAgent(event), [event])),
    ...policies.map((name) => echoAgent(name)),
    listening(echoAgent('all', Object.assign({}, ...Object.values(agentLayer))), harnessLayer),
  ];
}

function listening(agent: Agent, events: readonly HarnessEvent[]): Agent {
  for (const event of events) agent.on(event, () => undefined);
  return agent;
}

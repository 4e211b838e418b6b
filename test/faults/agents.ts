import { Context } from '@temporalio/activity';
import { z } from 'zod';
import { type Agent, type AgentOptions, defineAgent } from '../../src/agent/agent.ts';
import { defineTool, type Tool } from '../../src/agent/tool.ts';
import type { ReplayKind } from '../../src/common/manifest.ts';
import type { UserMessage } from '../../src/common/messages.ts';
import type { Evidence } from '../support/evidence.ts';
import { point } from './points.ts';

/** Log of the tools: a line with `what: 'entered'` before the effect, one with `what: 'done'` after it. */
export const effectsLog = 'effects.log';

const replayKinds = ['never', 'safe', 'keyed'] as const satisfies readonly ReplayKind[];

/**
 * `plain` has no hooks and parallel batches, `sequential` runs calls one by one, `hooked` has every gate and hook that is
 * an effect of its own, `local` has local ones, `all` drains its queues at once, `steered` has a queue hook that gives a
 * message after the first turn, and `switching`, `large` and `steered` have the policies of these names in the suite's bundle.
 */
export type FaultAgent = 'plain' | 'sequential' | 'hooked' | 'local' | 'all' | 'switching' | 'large' | 'steered';

/** The agents of the matrix. @param of the evidence of a session */
export function faultAgents(of: (sessionId: string) => Evidence): Agent[] {
  const here = (name: string) => point(of(sessionOfCaller()), name);
  const tools = [...replayKinds.map((replay) => effectTool(replay, of)), localTool(here)];
  const agent = (name: FaultAgent, extra: Partial<AgentOptions> = {}) =>
    defineAgent({ name, model: 'scripted/main', tools, retry: { baseDelayMs: 50 }, ...extra });
  const beforeToolCall: AgentOptions['beforeToolCall'] = async ({ toolCall }) => {
    await here(`inside beforeToolCall of ${toolCall.id}`);
    return undefined;
  };
  const hooked = agent('hooked', {
    beforeToolCall,
    afterToolCall: async ({ toolCall }) => {
      await here(`inside afterToolCall of ${toolCall.id}`);
      return { details: { patched: true } };
    },
    transformContext: async (messages) => {
      await here('inside transformContext');
      return messages;
    },
    getFollowUpMessages: async () => {
      await here('inside getFollowUpMessages');
      return [];
    },
  });
  hooked.on('before_agent_start', async () => {
    await here('inside before_agent_start');
    return { messages: [{ role: 'user', content: [{ type: 'text', text: 'Remember' }], timestamp: 1 }] };
  });
  return [
    agent('plain'),
    agent('sequential', { toolExecution: 'sequential', beforeToolCall }),
    hooked,
    agent('local', { beforeToolCall, hookSettings: { beforeToolCall: { local: true } }, lingerMs: 1 }),
    agent('all', { steeringMode: 'all', followUpMode: 'all' }),
    agent('switching'),
    agent('large'),
    agent('steered', { getSteeringMessages: () => steering(of(sessionOfCaller())) }),
  ];
}

function sessionOfCaller(): string {
  return Context.current().info.workflowExecution?.workflowId ?? '';
}

function steering(evidence: Evidence): UserMessage[] {
  evidence.note('asked.log', { what: 'asked' });
  if (evidence.read('asked.log').length !== 2) return [];
  return [{ role: 'user', content: [{ type: 'text', text: 'By the way' }], timestamp: 1 }];
}

function effectTool(replay: ReplayKind, of: (sessionId: string) => Evidence): Tool {
  return defineTool({
    name: `effect_${replay}`,
    description: `Has an effect that is replayed: ${replay}`,
    parameters: z.object({}),
    replay,
    heartbeatTimeoutMs: 2_500,
    async execute(_args, { sessionId, toolCallId, idempotencyKey, attempt }) {
      const evidence = of(sessionId);
      const facts = { tool: `effect_${replay}`, toolCallId, idempotencyKey, attempt };
      evidence.note(effectsLog, { what: 'entered', ...facts });
      await point(evidence, `inside ${toolCallId}, before its effect`);
      evidence.note(effectsLog, { what: 'done', ...facts });
      await point(evidence, `inside ${toolCallId}, after its effect`);
      return `effect_${replay} done`;
    },
  });
}

function localTool(here: (name: string) => Promise<void>): Tool {
  return defineTool({
    name: 'read_local',
    description: 'Reads something, as a local activity',
    parameters: z.object({}),
    replay: 'safe',
    local: true,
    async execute(_args, { toolCallId }) {
      await here(`inside ${toolCallId}`);
      return 'read';
    },
  });
}

import type { Agent } from '../../agent/agent.ts';
import { EverturnError } from '../../common/errors.ts';
import { type AgentMessage, parseIncoming } from '../../common/messages.ts';
import type { Effect } from '../effect.ts';
import { callHook, keptAnswer } from './run-hook.ts';

type QueueHook = 'getSteeringMessages' | 'getFollowUpMessages';

/** Asks an agent's queue hook, once for all attempts of the effect: a retry gets the kept answer and loses nothing. */
export function askQueueHook(effect: Effect, agent: Agent, name: QueueHook): Promise<AgentMessage[]> {
  return callHook<AgentMessage[]>(effect, {
    hook: name,
    handler: 0,
    settings: agent.hookSettings[name],
    call: async () => checkAnswer(name, await agent[name]?.()),
    describe: (messages) => ({ messages: messages.length }),
  });
}

/** What the hook answered to an earlier attempt of the effect. Empty: nothing that was kept. */
export function keptQueueAnswer(effect: Effect, name: QueueHook): AgentMessage[] {
  return (keptAnswer(effect, { hook: name, handler: 0 }) as AgentMessage[] | undefined) ?? [];
}

function checkAnswer(name: string, answer: unknown): AgentMessage[] {
  if (answer === undefined || answer === null) return [];
  if (!Array.isArray(answer))
    throw new EverturnError('hook', `Hook ${name} must return a list of messages.`, { details: { hook: name } });
  return answer.map((message: unknown) => parseIncoming(message, Date.now()));
}

import type { Agent } from '../../agent/agent.ts';
import { EverturnError } from '../../common/errors.ts';
import { type AgentMessage, parseIncoming } from '../../common/messages.ts';
import type { Effect } from '../effect.ts';
import { callHook } from './run-hook.ts';

/** Asks an agent's queue hook, once for all attempts of the effect: a retry gets the kept answer and loses nothing. */
export function askQueueHook(
  effect: Effect,
  agent: Agent,
  name: 'getSteeringMessages' | 'getFollowUpMessages',
): Promise<AgentMessage[]> {
  return callHook<AgentMessage[]>(effect, {
    hook: name,
    handler: 0,
    settings: agent.hookSettings[name],
    call: async () => checkAnswer(name, await agent[name]?.()),
    describe: (messages) => ({ messages: messages.length }),
  });
}

function checkAnswer(name: string, answer: unknown): AgentMessage[] {
  if (answer === undefined || answer === null) return [];
  if (!Array.isArray(answer))
    throw new EverturnError('hook', `Hook ${name} must return a list of messages.`, { details: { hook: name } });
  return answer.map((message: unknown) => parseIncoming(message, Date.now()));
}

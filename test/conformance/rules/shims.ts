import type { Rule } from '../rules.ts';
import { eachMessage } from './walk.ts';

/**
 * Differences that pi's side was given while it played, since they change what happens and not only how it is told:
 * 1 (order at turn end, in pi-loop.ts) and 43 (several handlers combine, in pi-handlers.ts). And 51: a reply that no
 * provider made is an empty message of the API "everturn" there, and an empty one of the model's API in pi.
 */
export const shims: Rule = ({ scenario: { setup }, pi, everturn, use }) => {
  if (setup.layer === 'loop' && setup.policy === 'both') use(1);
  if (setup.layer === 'harness') {
    const { before_agent_start, context, tool_call, tool_result } = setup.handlers;
    if ([before_agent_start, context, tool_call, tool_result].some((count) => count > 1)) use(43);
  }
  for (const side of [pi, everturn]) {
    eachMessage(side, (message) => {
      if (message.stopReason !== 'error' && message.stopReason !== 'aborted') return;
      const content = message.content as { type: string; text?: string }[];
      if (!content.every(({ type, text }) => type === 'text' && text === '')) return;
      if (side === everturn && message.api === 'everturn') use(51);
      message.content = [];
      message.api = 'nobody';
    });
  }
};

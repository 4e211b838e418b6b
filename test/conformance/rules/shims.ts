import type { Rule } from '../rules.ts';
import { eachMessage } from './walk.ts';

/** Texts, as they stand in JSON. */
const words: readonly [number: number, theirs: RegExp, ours: string][] = [
  [
    56,
    /Tool call \\"\w+\\" was not executed: the response hit the output token limit, so its arguments may be truncated\. Re-issue the tool call with complete arguments\./g,
    'The call was not executed: the output limit cut the message, so the arguments may be incomplete. Issue the call again with complete arguments.',
  ],
  [57, /(Validation failed for tool [^"]*"\w*\\":\\n {2}- text: )must have required properties text/g, '$1missing'],
];

/**
 * Differences that pi's side was given while it played, since they change what happens and not only how it is told:
 * 1 (order at turn end, in pi-loop.ts) and 43 (several handlers combine, in pi-handlers.ts). And 51: a reply that no
 * provider made is an empty message of the API "everturn" there, and an empty one of the model's API in pi. And 56: what the
 * model is told of a call that the output limit cut; 57: the words of pi-ai 1.6's validator.
 */
export const shims: Rule = ({ scenario: { setup }, pi, everturn, use }) => {
  if (setup.layer === 'loop' && setup.policy === 'both') use(1);
  if (setup.layer === 'harness') {
    const { before_agent_start, context, tool_call, tool_result } = setup.handlers;
    if ([before_agent_start, context, tool_call, tool_result].some((count) => count > 1)) use(43);
  }
  for (const [number, theirs, ours] of words) {
    const text = JSON.stringify(pi);
    const changed = text.replaceAll(theirs, ours);
    if (changed === text) continue;
    Object.assign(pi, JSON.parse(changed));
    use(number);
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

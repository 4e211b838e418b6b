import type { AgentMessage, AssistantMessage } from './messages.ts';

const charsPerToken = 4;
// pi counts an image as this many characters (pi-semantics §4).
const imageChars = 4800;

/**
 * pi's token estimate: the usage that the provider reported with the last good reply, plus a quarter of the characters
 * of every message after it; without such a reply, a quarter of all characters.
 */
export function estimateTokens(messages: readonly AgentMessage[]): number {
  let total = 0;
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index];
    if (message === undefined) continue;
    const reported = reportedTokens(message);
    if (reported > 0) return reported + total;
    total += Math.ceil(charsOf(message) / charsPerToken);
  }
  return total;
}

function reportedTokens(message: AgentMessage): number {
  if (message.role !== 'assistant') return 0;
  const { stopReason, usage } = message as AssistantMessage;
  if (stopReason === 'error' || stopReason === 'aborted') return 0;
  return usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
}

function charsOf(message: AgentMessage): number {
  const content = (message as { content?: unknown }).content;
  if (typeof content === 'string') return content.length;
  if (!Array.isArray(content)) return 0;
  let chars = 0;
  for (const block of content) {
    if (block.type === 'text') chars += block.text.length;
    else if (block.type === 'thinking') chars += block.thinking.length;
    else if (block.type === 'image') chars += imageChars;
    else if (block.type === 'toolCall') chars += block.name.length + JSON.stringify(block.arguments).length;
  }
  return chars;
}

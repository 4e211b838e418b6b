import { z } from 'zod';
import type { HookInstaller } from '../../agent/agent.ts';
import { estimateTokens } from '../../common/estimate-tokens.ts';
import {
  type AgentMessage,
  type AssistantMessage,
  type ToolResultMessage,
  toolCallsOf,
} from '../../common/messages.ts';
import { emptyUsage } from '../../common/usage.ts';
import type { HookSettings } from '../types.ts';
import { checkOptions, isFunction } from './options.ts';

export interface ContextWindowOptions {
  /** Tokens. When the messages are estimated above it, the oldest are left out of the request. */
  maxTokens: number;
  /** Tokens that are left after pruning. Default: half of maxTokens. */
  targetTokens?: number;
  /** True (default): the first user message, which as a rule says what it is all about, stays. */
  keepFirstUserMessage?: boolean;
  /** Tokens of one message. Default: a quarter of its characters (`estimateTokens`), an image 1,200. */
  estimate?: (message: AgentMessage) => number;
  hook?: HookSettings;
}

const optionsSchema = z
  .strictObject({
    maxTokens: z.number().int().positive(),
    targetTokens: z.number().int().positive().exactOptional(),
    keepFirstUserMessage: z.boolean().default(true),
    estimate: z.custom<(message: AgentMessage) => number>(isFunction, 'must be a function').exactOptional(),
    hook: z.custom<HookSettings>().exactOptional(),
  })
  .refine(({ maxTokens, targetTokens }) => targetTokens === undefined || targetTokens <= maxTokens, {
    path: ['targetTokens'],
    message: 'must not be above maxTokens',
  });

/**
 * Context window management: leaves the oldest messages out of what the model sees; the transcript stays whole. A tool
 * call and its results go together, and the newest message with its results always stays, however large. Where it cuts
 * depends on the transcript alone, and moves in steps from maxTokens down to targetTokens: any worker cuts alike, and the
 * provider's prompt cache holds in between. System prompt and tools are not counted: leave room for them and the reply.
 */
export function contextWindow(options: ContextWindowOptions): HookInstaller {
  const { hook, ...limits } = checkOptions('contextWindow', optionsSchema, options);
  const sizeOf = sizes(limits.estimate ?? estimateAlone);
  const settings = {
    max: limits.maxTokens,
    target: limits.targetTokens ?? Math.floor(limits.maxTokens / 2),
    keepFirst: limits.keepFirstUserMessage,
  };
  return (agent) =>
    agent.on(
      'context',
      ({ messages }) => {
        const kept = prune(messages, sizeOf, settings);
        return kept.length === messages.length ? undefined : { messages: kept };
      },
      hook,
    );
}

/** Messages that stand or go together: one message, with the results of its calls. */
interface Group {
  from: number;
  size: number;
}

function prune(
  messages: AgentMessage[],
  sizeOf: (message: AgentMessage) => number,
  { max, target, keepFirst }: { max: number; target: number; keepFirst: boolean },
): AgentMessage[] {
  const first = keepFirst ? messages.findIndex((message) => message.role === 'user') : -1;
  const pinned = first < 0 ? undefined : messages[first];
  const pinnedSize = pinned === undefined ? 0 : sizeOf(pinned);
  const groups = groupsOf(messages, sizeOf);
  let start = 0;
  let total = 0;
  // Replays every cut that this transcript has had: a cut depends on what was there then, so it does not move with each
  // message that comes.
  for (const [index, group] of groups.entries()) {
    total += group.size;
    const size = () => total + (cutAt(groups, start) > first ? pinnedSize : 0);
    if (size() <= max) continue;
    for (; start < index && size() > target; start++) total -= groups[start]?.size ?? 0;
  }
  const cut = cutAt(groups, start);
  const kept = messages.slice(cut);
  return pinned !== undefined && cut > first ? [pinned, ...kept] : kept;
}

function cutAt(groups: readonly Group[], start: number): number {
  return groups[start]?.from ?? 0;
}

function groupsOf(messages: readonly AgentMessage[], sizeOf: (message: AgentMessage) => number): Group[] {
  const groups: Group[] = [];
  const callers = new Map<string, number>();
  for (const [from, message] of messages.entries()) {
    if (message.role === 'assistant') {
      for (const call of toolCallsOf(message as AssistantMessage)) callers.set(call.id, groups.length);
    }
    groups.push({ from, size: sizeOf(message) });
    if (message.role !== 'toolResult') continue;
    // With all that a hook may have put between a call and its result.
    const caller = callers.get((message as ToolResultMessage).toolCallId) ?? groups.length - 1;
    const joined = groups.splice(caller + 1);
    const group = groups[caller];
    if (group !== undefined) group.size += joined.reduce((sum, { size }) => sum + size, 0);
  }
  return groups;
}

/** What a reply reported is the size of its whole request, and of one that may have been pruned: it says nothing here. */
function estimateAlone(message: AgentMessage): number {
  return estimateTokens([message.role === 'assistant' ? { ...message, usage: emptyUsage() } : message]);
}

/** Messages are frozen and shared from turn to turn, so each is measured once. */
function sizes(estimate: (message: AgentMessage) => number): (message: AgentMessage) => number {
  const known = new WeakMap<object, number>();
  return (message) => {
    const size = known.get(message) ?? estimate(message);
    known.set(message, size);
    return size;
  };
}

import { z } from 'zod';
import { EverturnError } from './errors.ts';
import { estimateTokens } from './estimate-tokens.ts';
import { textOf, toolCallsOf } from './messages.ts';
import type { Policy, ShouldStopAfterTurnContext } from './policy.ts';

export interface EarlyTerminationOptions {
  /** The run stops after a reply with this text, such as TASK_COMPLETE. */
  marker?: string | RegExp;
  /** The run stops after a turn whose calls were all of these tools and went well. */
  tools?: readonly string[];
  /** The run stops when the context is estimated above so many tokens. */
  maxTokens?: number;
}

const optionsSchema = z
  .strictObject({
    marker: z.union([z.string().min(1), z.instanceof(RegExp)]).exactOptional(),
    tools: z.array(z.string().min(1)).min(1).exactOptional(),
    maxTokens: z.number().int().positive().exactOptional(),
  })
  .refine((options) => Object.keys(options).length > 0, 'give marker, tools or maxTokens');

/**
 * Early termination, for `definePolicy(agent, earlyTermination({ marker: 'TASK_COMPLETE' }))`. It stops before the queues
 * are looked at: what waits there waits for the next run. A tool that returns `terminate: true` needs no policy, and lets
 * waiting messages go on with the run.
 * @throws EverturnError `invalid_config`
 */
export function earlyTermination(options: EarlyTerminationOptions): Pick<Required<Policy>, 'shouldStopAfterTurn'> {
  const parsed = optionsSchema.safeParse(options);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : issue?.path.join('.');
    throw new EverturnError(
      'invalid_config',
      `earlyTermination: ${[where, issue?.message].filter(Boolean).join(': ')}`,
    );
  }
  const { marker, tools, maxTokens } = parsed.data;
  const marked = markerTest(marker);
  return {
    shouldStopAfterTurn: ({ message, toolResults, context }) =>
      marked(textOf(message)) ||
      (tools !== undefined && allOf(tools, message, toolResults)) ||
      (maxTokens !== undefined && estimateTokens(context.messages) > maxTokens),
  };
}

function markerTest(marker: string | RegExp | undefined): (text: string) => boolean {
  if (marker === undefined) return () => false;
  if (typeof marker === 'string') return (text) => text.includes(marker);
  // Without g and y, whose memory of the last test would differ in a replay.
  const expression = new RegExp(marker.source, marker.flags.replace(/[gy]/g, ''));
  return (text) => expression.test(text);
}

function allOf(
  tools: readonly string[],
  message: ShouldStopAfterTurnContext['message'],
  results: ShouldStopAfterTurnContext['toolResults'],
): boolean {
  const calls = toolCallsOf(message);
  return (
    calls.length > 0 && calls.every((call) => tools.includes(call.name)) && results.every((result) => !result.isError)
  );
}

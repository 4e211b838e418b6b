import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { RetryableToolError, type Tool, type ToolContext, type ToolReturn } from '../../agent/tool.ts';
import { errorText } from '../../common/errors.ts';
import type { ToolOutcome, ToolOutcomeKind } from '../../common/events.ts';
import { contentSchema, utf8Length } from '../../common/messages.ts';
import { raceGrace } from '../grace.ts';
import { textOutcome } from './outcome.ts';

/** Bytes of JSON that a result may have: it goes into every later request. */
const maxResultBytes = 1024 * 1024;
const toolAttempts = 3;
const retryDelayMs = 500;

export interface Executed {
  outcome: ToolOutcomeKind;
  result: ToolOutcome;
  isError: boolean;
  /** The tool was left behind: its true result, if it ever comes. */
  late?: Promise<ToolReturn>;
}

const resultSchema = z.looseObject({
  content: contentSchema,
  details: z.unknown().optional(),
  terminate: z.boolean().exactOptional(),
  isError: z.boolean().exactOptional(),
});

/** How an execution was stopped from outside. */
export interface StopSource {
  signal: AbortSignal;
  graceMs: number;
  /** What the model is told: by a timeout, or by an abort. */
  reason(): { outcome: ToolOutcomeKind; text: string };
}

/**
 * Executes a tool. A throw is a result for the model. When the signal fires the tool has the grace time to return; after
 * that it is left behind with an honest "outcome unknown". RetryableToolError is tried again here, where the claim is held.
 */
export async function runTool(tool: Tool, args: unknown, context: ToolContext, stop: StopSource): Promise<Executed> {
  for (let attempt = 1; ; attempt++) {
    const running = tool.execute(args, context);
    const ended = await raceGrace(running, stop);
    if (ended.kind === 'left') {
      const { outcome, text } = stop.reason();
      return { ...failure(outcome, `${text}, outcome unknown: the tool did not stop.`), late: running };
    }
    if (ended.kind === 'returned') return checked(`Tool ${tool.name}`, ended.value);
    const { error } = ended;
    if (error instanceof RetryableToolError && attempt < toolAttempts && !stop.signal.aborted) {
      const pause = error.delayMs ?? retryDelayMs * 2 ** (attempt - 1);
      await delay(pause, undefined, { signal: stop.signal, ref: false }).catch(() => {});
      if (!stop.signal.aborted) continue;
    }
    if (!stop.signal.aborted) return failure('failed', errorText(error));
    const { outcome, text } = stop.reason();
    // What a tool throws because it was stopped says that it was aborted, not by what.
    return failure(outcome, outcome === 'aborted' ? errorText(error) : `${text}: ${errorText(error)}`);
  }
}

/** `who` made the result: what is wrong with it is told in that name. */
export function checked(who: string, value: ToolReturn): Executed {
  if (typeof value === 'string') return limited(who, { content: [{ type: 'text', text: value }], details: {} }, false);
  const parsed = resultSchema.safeParse(value);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const where = issue?.path.join('.') || 'result';
    return failure(
      'failed',
      `${who} ran, but returned the wrong shape (${where}: ${issue?.message}). It must return a text or { content: [{ type: "text", text }] }.`,
    );
  }
  const { isError, ...result } = value;
  return limited(who, result, isError ?? false);
}

function limited(who: string, result: ToolOutcome, isError: boolean): Executed {
  let text: string;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    return failure('failed', `${who} ran, but its result cannot be stored as JSON: ${errorText(error)}`);
  }
  const size = utf8Length(text);
  if (size > maxResultBytes) {
    return failure(
      'failed',
      `${who} ran and took effect, but its result has ${size} bytes and the limit is ${maxResultBytes}. Ask for less at a time, or let it write a file.`,
    );
  }
  // What JSON cannot hold (undefined, functions) is gone before hooks and readers see it, not only after a crash.
  return { outcome: isError ? 'failed' : 'completed', result: JSON.parse(text) as ToolOutcome, isError };
}

function failure(outcome: ToolOutcomeKind, text: string): Executed {
  return { outcome, result: textOutcome(text), isError: true };
}

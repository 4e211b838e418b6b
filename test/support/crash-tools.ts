import { once } from 'node:events';
import { z } from 'zod';
import { defineTool, type Tool, type ToolContext, type ToolReturn } from '../../src/agent/tool.ts';
import type { ReplayKind } from '../../src/common/manifest.ts';
import type { Evidence } from './evidence.ts';

/** Log of what tools did: a line with `what: 'entered'` before anything else, and one with `what: 'done'` at the end. */
export const effectsLog = 'effects.log';
/** The file that lets held tools go on. */
export const releaseFile = 'release';
/** The file that a tool with `stopAfterEffect` writes before it hangs. */
export const afterEffectFile = 'after-effect';

const effectParameters = z.object({
  /** Waits for the release file between entry and end; `<call id>.holding` says that it does. */
  hold: z.boolean().optional(),
  /** In its first entry: has its effect, says so by a file, and never returns. */
  stopAfterEffect: z.boolean().optional(),
  /** Told through `progress` right after the entry. */
  progress: z.string().optional(),
});

export interface CrashToolsOptions {
  /** The evidence of a session. */
  of: (sessionId: string) => Evidence;
  /** Task queue of the tool `effect_elsewhere`. */
  elsewhere: string;
}

/** Tools that leave evidence of what really happened, and one that misbehaves. */
export function crashTools({ of, elsewhere }: CrashToolsOptions): Tool[] {
  const effect = (name: string, replay: ReplayKind, extra: { taskQueue?: string } = {}) =>
    defineTool({
      name,
      description: `Has an effect that is replayed: ${replay}`,
      parameters: effectParameters,
      replay,
      heartbeatTimeoutMs: 2_500,
      ...extra,
      execute: (args, context) => haveEffect(of(context.sessionId), name, args, context),
    });
  return [
    effect('effect_never', 'never'),
    effect('effect_safe', 'safe'),
    effect('effect_keyed', 'keyed'),
    effect('effect_elsewhere', 'safe', { taskQueue: elsewhere }),
    defineTool({
      name: 'effect_reconciled',
      description: 'Has an effect once, and knows afterwards whether it took place',
      parameters: effectParameters,
      heartbeatTimeoutMs: 2_500,
      execute: (args, context) => haveEffect(of(context.sessionId), 'effect_reconciled', args, context),
      reconcile(_args, { sessionId, toolCallId }) {
        const lines = of(sessionId).read(effectsLog);
        const done = lines.some((line) => line.what === 'done' && line.toolCallId === toolCallId);
        return done ? 'effect_reconciled was done before the crash' : undefined;
      },
    }),
    block('block_never', 'never', of),
    block('block_safe', 'safe', of),
  ];
}

/** Blocks its worker's event loop in its first entry; with `untilStopped` it then waits until its signal fires. */
function block(name: string, replay: ReplayKind, of: CrashToolsOptions['of']): Tool {
  return defineTool({
    name,
    description: 'Blocks the event loop',
    parameters: z.object({ ms: z.number(), untilStopped: z.boolean().optional() }),
    replay,
    heartbeatTimeoutMs: 2_500,
    async execute({ ms, untilStopped }, { sessionId, toolCallId, attempt, signal }) {
      of(sessionId).note(effectsLog, { what: 'entered', tool: name, toolCallId });
      const end = Date.now() + (attempt === 1 ? ms : 0);
      while (Date.now() < end);
      if (untilStopped && attempt === 1) {
        if (!signal.aborted) await once(signal, 'abort');
        of(sessionId).note(effectsLog, { what: 'stopped', tool: name, toolCallId });
        signal.throwIfAborted();
      }
      of(sessionId).note(effectsLog, { what: 'done', tool: name, toolCallId });
      return `${name} done`;
    },
  });
}

async function haveEffect(
  evidence: Evidence,
  tool: string,
  args: z.output<typeof effectParameters>,
  context: ToolContext,
): Promise<ToolReturn> {
  const { toolCallId, idempotencyKey, attempt, lastProgress } = context;
  const facts = { tool, toolCallId, idempotencyKey, attempt, lastProgress: lastProgress ?? null };
  evidence.note(effectsLog, { what: 'entered', ...facts });
  if (args.progress !== undefined) await context.progress(args.progress);
  if (args.stopAfterEffect && attempt === 1) {
    evidence.note(effectsLog, { what: 'done', ...facts });
    evidence.put(afterEffectFile);
    await new Promise(() => undefined);
  }
  if (args.hold) {
    evidence.put(`${toolCallId}.holding`);
    await evidence.until(releaseFile, context.signal);
  }
  evidence.note(effectsLog, { what: 'done', ...facts });
  return `${tool} done`;
}

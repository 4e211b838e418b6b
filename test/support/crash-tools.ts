import { setTimeout as delay } from 'node:timers/promises';
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
  /** Waits for the release file between entry and end. */
  hold: z.boolean().optional(),
  /** In its first entry: has its effect, says so by a file, and never returns. */
  stopAfterEffect: z.boolean().optional(),
  /** Told through `progress` right after the entry. */
  progress: z.string().optional(),
});

/** Tools that leave evidence of what really happened, and tools that misbehave in one way each. */
export function crashTools(evidence: Evidence, options: { elsewhere?: string } = {}): Tool[] {
  const effect = (name: string, replay: ReplayKind, extra: { taskQueue?: string } = {}) =>
    defineTool({
      name,
      description: `Has an effect that is replayed: ${replay}`,
      parameters: effectParameters,
      replay,
      heartbeatTimeoutMs: 1_500,
      ...extra,
      execute: (args, context) => haveEffect(evidence, name, args, context),
    });
  return [
    effect('effect_never', 'never'),
    effect('effect_safe', 'safe'),
    effect('effect_keyed', 'keyed'),
    ...(options.elsewhere === undefined ? [] : [effect('effect_elsewhere', 'safe', { taskQueue: options.elsewhere })]),
    reconciled(evidence),
    ...misbehaving(evidence),
  ];
}

async function haveEffect(
  evidence: Evidence,
  tool: string,
  args: z.output<typeof effectParameters>,
  context: ToolContext,
): Promise<ToolReturn> {
  const { toolCallId, idempotencyKey, attempt, lastProgress } = context;
  const note = (what: string) => evidence.note(effectsLog, { what, tool, toolCallId, idempotencyKey, attempt, lastProgress: lastProgress ?? null });
  note('entered');
  if (args.progress !== undefined) await context.progress(args.progress);
  if (args.stopAfterEffect && attempt === 1) {
    note('done');
    evidence.put(afterEffectFile);
    await new Promise(() => undefined);
  }
  if (args.hold) {
    evidence.put(`${toolCallId}.holding`);
    await evidence.until(releaseFile, context.signal);
  }
  note('done');
  return `${tool} done`;
}

/** Knows afterwards whether its effect took place, by its evidence. */
function reconciled(evidence: Evidence): Tool {
  return defineTool({
    name: 'effect_reconciled',
    description: 'Has an effect once, and can find out about it',
    parameters: effectParameters,
    heartbeatTimeoutMs: 1_500,
    execute: (args, context) => haveEffect(evidence, 'effect_reconciled', args, context),
    reconcile(_args, { toolCallId }) {
      const done = evidence.read(effectsLog).some((line) => line.what === 'done' && line.toolCallId === toolCallId);
      return done ? 'effect_reconciled was done before the crash' : undefined;
    },
  });
}

function misbehaving(evidence: Evidence): Tool[] {
  const none = z.object({});
  return [
    defineTool({
      name: 'block',
      description: 'Blocks the event loop',
      parameters: z.object({ ms: z.number() }),
      heartbeatTimeoutMs: 1_500,
      execute({ ms }, { toolCallId }) {
        evidence.note(effectsLog, { what: 'entered', tool: 'block', toolCallId });
        const end = Date.now() + ms;
        while (Date.now() < end);
        evidence.note(effectsLog, { what: 'done', tool: 'block', toolCallId });
        return 'block done';
      },
    }),
    defineTool({
      name: 'huge',
      description: 'Returns much text',
      parameters: z.object({ bytes: z.number() }),
      execute: ({ bytes }) => 'x'.repeat(bytes),
    }),
    defineTool({
      name: 'wrong_shape',
      description: 'Returns what no tool may return',
      parameters: none,
      execute: () => ({ content: 'not a list' }) as unknown as ToolReturn,
    }),
    defineTool({
      name: 'throws',
      description: 'Throws',
      parameters: z.object({ message: z.string().default('it broke') }),
      execute({ message }) {
        throw new Error(message);
      },
    }),
    defineTool({
      name: 'ignores_signal',
      description: 'Goes on when it is asked to stop',
      parameters: z.object({ ms: z.number() }),
      async execute({ ms }, { toolCallId }) {
        evidence.note(effectsLog, { what: 'entered', tool: 'ignores_signal', toolCallId });
        await delay(ms);
        evidence.note(effectsLog, { what: 'done', tool: 'ignores_signal', toolCallId });
        return 'ignores_signal done';
      },
    }),
  ];
}

import type { Agent } from '../../agent/agent.ts';
import { canonicalJson, type Json } from '../../common/json.ts';
import type { AssistantMessage, ToolCall } from '../../common/messages.ts';
import type { AgentContext } from '../../common/policy.ts';
import { type PatchableResult, patchResult } from '../../hooks/reducers.ts';
import type { AskResult } from '../../hooks/types.ts';
import type { Effect } from '../effect.ts';
import { textOutcome } from '../tools/outcome.ts';
import { askAgain, askHook } from './run-hook.ts';

export interface ToolMoment {
  assistantMessage: AssistantMessage;
  call: ToolCall;
  /** Validated. Changed in place by a gate, it is what the tool gets. */
  args: Record<string, unknown>;
  context: AgentContext;
}

export type GateVerdict = { pass: true } | { pass: false; failed: boolean; reason: string };

interface GateAnswer extends AskResult {
  block?: boolean;
  reason?: string;
}

/** beforeToolCall, then the handlers of tool_call up to the first that blocks, asks or throws. */
export async function passGates(effect: Effect, agent: Agent, moment: ToolMoment, index: number): Promise<GateVerdict> {
  const { beforeToolCall, registry, hookSettings } = agent;
  const { assistantMessage, call, args, context } = moment;
  const stages: {
    hook: string;
    handler: number;
    settings: (typeof hookSettings)['beforeToolCall'];
    ask: () => Promise<GateAnswer | undefined>;
  }[] = [];
  if (beforeToolCall !== undefined) {
    const ask = async () => beforeToolCall({ assistantMessage, toolCall: call, args, context }, effect.signal);
    stages.push({ hook: 'beforeToolCall', handler: 0, settings: hookSettings.beforeToolCall, ask });
  }
  for (const [handler, entry] of registry.handlers('tool_call').entries()) {
    const ask = async () => entry.handler({ type: 'tool_call', toolCallId: call.id, toolName: call.name, input: args });
    stages.push({ hook: 'tool_call', handler, settings: entry.settings, ask });
  }
  for (const { hook, handler, settings, ask } of stages) {
    const answer = await askHook(effect, {
      hook,
      handler,
      settings,
      about: String(index),
      call: async () => {
        const before = canonicalJson(args);
        try {
          const verdict = (await ask()) ?? {};
          return { verdict, ...(canonicalJson(args) === before ? {} : { args: structuredClone(args) }) };
        } catch (error) {
          // The next try finds the arguments as this one found them.
          if (canonicalJson(args) !== before) replaceArgs(args, JSON.parse(before) as Record<string, unknown>);
          throw error;
        }
      },
      describe: ({ verdict, args: changed }) => ({
        ...(verdict.block ? { block: true } : {}),
        ...(verdict.reason === undefined ? {} : { reason: verdict.reason }),
        ...(verdict.ask === undefined ? {} : { ask: { ...verdict.ask } as Json }),
        ...(changed === undefined ? {} : { args: 'changed' }),
      }),
    });
    if ('error' in answer) return { pass: false, failed: true, reason: answer.error };
    const { verdict, args: changed } = answer.value;
    if (changed !== undefined) replaceArgs(args, changed);
    if (verdict.block) return { pass: false, failed: false, reason: verdict.reason || 'Tool execution was blocked' };
    if (verdict.ask !== undefined)
      return { pass: false, failed: false, reason: `approval required: ${verdict.ask.reason}` };
  }
  return { pass: true };
}

export interface ResultVerdict extends PatchableResult {
  /** Set when a hook threw: its error is the result. */
  failed: boolean;
}

/** afterToolCall, then the handlers of tool_result: each sees what the ones before made of the result. */
export async function patchWithHooks(
  effect: Effect,
  agent: Agent,
  moment: ToolMoment,
  executed: PatchableResult,
): Promise<ResultVerdict> {
  const { afterToolCall, registry, hookSettings } = agent;
  const { assistantMessage, call, args, context } = moment;
  let current: PatchableResult = { result: executed.result, isError: executed.isError };
  const apply = async (
    hook: string,
    handler: number,
    settings: (typeof hookSettings)['afterToolCall'],
    ask: () => Promise<unknown>,
  ) => {
    const before = current;
    const answer = await askHook(effect, {
      hook,
      handler,
      settings,
      call: async () => patchResult(before, ((await ask()) ?? {}) as Parameters<typeof patchResult>[1]),
      // What another handler is still to take out of the result must not reach the disk.
      keep: async () => askAgain,
      describe: (after) => ({ changed: changedFields(before, after) }),
    });
    if ('error' in answer) return answer.error;
    current = answer.value;
    return undefined;
  };
  if (afterToolCall !== undefined) {
    const { result, isError } = current;
    const ask = async () =>
      afterToolCall({ assistantMessage, toolCall: call, args, result, isError, context }, effect.signal);
    const error = await apply('afterToolCall', 0, hookSettings.afterToolCall, ask);
    if (error !== undefined) return failedVerdict(error);
  }
  for (const [handler, entry] of registry.handlers('tool_result').entries()) {
    const ask = async () => {
      const { content, details, usage } = current.result;
      return entry.handler({
        type: 'tool_result',
        toolCallId: call.id,
        toolName: call.name,
        input: args,
        content,
        details,
        isError: current.isError,
        ...(usage === undefined ? {} : { usage }),
      });
    };
    const error = await apply('tool_result', handler, entry.settings, ask);
    if (error !== undefined) return failedVerdict(error);
  }
  return { ...current, failed: false };
}

export function hasResultHooks(agent: Agent): boolean {
  return agent.afterToolCall !== undefined || agent.registry.handlers('tool_result').length > 0;
}

/** A partial result on its way out: the handlers of tool_update may change or drop it. One that throws drops it. */
export function patchUpdate(
  agent: Agent,
  call: { id: string; name: string },
  partial: unknown,
): { partialResult: unknown } | null {
  let partialResult = partial;
  for (const { handler } of agent.registry.handlers('tool_update')) {
    try {
      const answer = handler({ type: 'tool_update', toolCallId: call.id, toolName: call.name, partialResult });
      if (answer === null) return null;
      if (answer !== undefined) partialResult = answer.partialResult;
    } catch {
      // What a redaction could not look at must not leave the process.
      return null;
    }
  }
  return { partialResult };
}

function failedVerdict(error: string): ResultVerdict {
  return { result: textOutcome(error), isError: true, failed: true };
}

function changedFields(before: PatchableResult, after: PatchableResult): string[] {
  const fields = ['content', 'details', 'usage', 'terminate'] as const;
  const changed: string[] = fields.filter(
    (field) => canonicalJson(before.result[field]) !== canonicalJson(after.result[field]),
  );
  return before.isError === after.isError ? changed : [...changed, 'isError'];
}

function replaceArgs(args: Record<string, unknown>, changed: Record<string, unknown>): void {
  if (args === changed) return;
  for (const key of Object.keys(args)) delete args[key];
  Object.assign(args, changed);
}

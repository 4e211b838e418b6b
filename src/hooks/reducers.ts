import type { ToolOutcome } from '../common/events.ts';
import type {
  AgentHarnessStreamOptions,
  AgentHarnessStreamOptionsPatch,
  SessionBeforeCompactResult,
  SessionBeforeTreeResult,
  ToolResultPatch,
} from './harness-types.ts';

/** A tool result and whether it is an error: what result hooks patch. */
export interface PatchableResult {
  result: ToolOutcome;
  isError: boolean;
}

/** Field by field: what is neither undefined nor null replaces. Nothing is merged deeper (pi-semantics §1.5). */
export function patchResult(current: PatchableResult, patch: ToolResultPatch): PatchableResult {
  const usage = patch.usage ?? current.result.usage;
  const terminate = patch.terminate ?? current.result.terminate;
  return {
    isError: patch.isError ?? current.isError,
    result: {
      content: patch.content ?? current.result.content,
      details: patch.details ?? current.result.details,
      ...(usage === undefined ? {} : { usage }),
      ...(terminate === undefined ? {} : { terminate }),
    },
  };
}

/** pi's patch (pi-semantics §2.6): present keys set or clear, maps merge by key, a map that ends empty is gone. */
export function patchStreamOptions(
  current: AgentHarnessStreamOptions,
  patch: AgentHarnessStreamOptionsPatch,
): AgentHarnessStreamOptions {
  const next: Record<string, unknown> = { ...current };
  for (const [key, value] of Object.entries(patch)) {
    const isMap = (key === 'headers' || key === 'metadata') && value !== undefined;
    next[key] = isMap
      ? patchMap(next[key] as Record<string, unknown> | undefined, value as Record<string, unknown>)
      : value;
    if (next[key] === undefined) delete next[key];
  }
  return next as AgentHarnessStreamOptions;
}

/** session_before_*: stops at the first cancel, else the last result counts. */
export function reduceSessionResults<Result extends SessionBeforeCompactResult | SessionBeforeTreeResult>(
  last: Result | undefined,
  result: Result | undefined,
): { value: Result | undefined; stop: boolean } {
  const value = result ?? last;
  return { value, stop: result?.cancel === true };
}

function patchMap(
  current: Record<string, unknown> | undefined,
  patch: Record<string, unknown>,
): Record<string, unknown> | undefined {
  const merged: Record<string, unknown> = { ...current, ...patch };
  for (const key of Object.keys(merged)) if (merged[key] === undefined) delete merged[key];
  return Object.keys(merged).length === 0 ? undefined : merged;
}

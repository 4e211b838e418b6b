import { EverturnError } from '../../common/errors.ts';
import { canonicalJson, type Json } from '../../common/json.ts';
import type { ScheduledEffect } from './types.ts';

/** The first effect that differs, in the order of the workflow, as an error; undefined when there is none. */
export function compareEffects(
  recorded: ReadonlyMap<number, ScheduledEffect>,
  replayed: readonly ScheduledEffect[],
): EverturnError | undefined {
  for (const now of replayed) {
    const then = recorded.get(now.seq);
    // What lies beyond the end of the history is no difference.
    if (then === undefined) continue;
    if (then.effect !== now.effect) {
      return changed(now, 'effect', then.effect, now.effect);
    }
    if ('input' in then) {
      const difference = firstDifference(plain(then.input), plain(now.input), '');
      if (difference !== undefined) return changed(now, difference.path, difference.then, difference.now);
    } else if (then.digest !== undefined && then.digest !== now.digest) {
      return changed(now, 'input', `digest ${then.digest}`, `digest ${now.digest}`);
    }
  }
  return undefined;
}

/** As it comes out of a payload. */
function plain(value: unknown): Json {
  return value === undefined ? null : (JSON.parse(canonicalJson(value)) as Json);
}

interface Difference {
  path: string;
  then: Json;
  now: Json;
}

/** The first place where two values differ, the keys of an object in the order of the alphabet. */
function firstDifference(then: Json, now: Json, path: string): Difference | undefined {
  if (!isParent(then) || !isParent(now) || Array.isArray(then) !== Array.isArray(now)) {
    return canonicalJson(then) === canonicalJson(now) ? undefined : { path: path || 'input', then, now };
  }
  const [left, right] = [then as Record<string, Json>, now as Record<string, Json>];
  for (const key of [...new Set([...Object.keys(left), ...Object.keys(right)])].sort()) {
    const at = path === '' ? key : `${path}.${key}`;
    const difference = firstDifference(left[key] ?? null, right[key] ?? null, at);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function isParent(value: Json): value is Json[] | { [key: string]: Json } {
  return typeof value === 'object' && value !== null;
}

const maxShown = 120;

function changed({ seq, effect, input }: ScheduledEffect, path: string, then: Json, now: Json): EverturnError {
  const { runId, turn } = (input ?? {}) as { runId?: string; turn?: number };
  const place = [...(runId === undefined ? [] : [`run ${runId}`]), ...(turn === undefined ? [] : [`turn ${turn}`])];
  const where = place.length === 0 ? '' : ` of ${place.join(', ')}`;
  const what =
    path === 'effect'
      ? `Effect ${seq} would be ${effect}${where}, where the history has ${then}.`
      : `Effect ${seq} (${effect}${where}) would be given another ${path}: ${shown(now)}, where the history has ${shown(then)}.`;
  return new EverturnError(
    'policy_changed',
    `${what} Keep the old way for runs that are going on, with \`patched\`, or let them end first.`,
    {
      details: { seq, effect, path, recorded: then, replayed: now },
    },
  );
}

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}

import { setTimeout as delay } from 'node:timers/promises';
import { EverturnError, errorText } from '../../common/errors.ts';
import type { Json } from '../../common/json.ts';
import { type Caller, withCaller } from '../../hooks/current-signal.ts';
import { NonRetryableHookError, normalizeHookError } from '../../hooks/errors.ts';
import type { HookSettings } from '../../hooks/types.ts';
import type { Effect } from '../effect.ts';
import { raceGrace } from '../grace.ts';

const defaultAttempts = 3;
const defaultDelayMs = 100;

/** One call of one handler. */
export interface HookCall<Value> {
  /** The document's name, and the handler's place among those of the stage, from 0. */
  hook: string;
  handler: number;
  settings: HookSettings | undefined;
  /** Tells calls of the same handler in one effect apart, such as a gate's for each tool call. */
  about?: string;
  call(): Value | Promise<Value>;
  /**
   * What is kept of a value, and how it is made again from that. Default: the value as JSON. `askAgain`: it must not be
   * kept, so a retry of the effect asks the handler again.
   */
  keep?(value: Value): Promise<Json | typeof askAgain>;
  restore?(kept: Json): Promise<Value>;
  /** True: the answer is kept while the next hook is asked. The effect waits for `kept` before it acts on it. */
  soon?: boolean;
  /** What the log says of it: small, without the texts. */
  describe(value: Value): Json;
}

export const askAgain = Symbol('ask again');

export type HookAnswer<Value> = { value: Value } | { error: string };

interface Kept {
  kept?: Json;
  error?: string;
  /** True: asked, and not kept. */
  again?: boolean;
  /** What the log says of it. */
  outcome: Json;
  durationMs: number;
  attempts: number;
}

/**
 * Calls a handler once for all attempts of the effect: what it answered is kept, and a retry or a replay gets that back.
 * A throw is tried again by its settings; what is thrown last is an answer too, and is kept like one.
 */
export async function askHook<Value>(effect: Effect, hook: HookCall<Value>): Promise<HookAnswer<Value>> {
  const name = stepName(hook);
  const known = effect.step(name) as unknown as Kept | undefined;
  if (known !== undefined && known.again !== true) {
    note(effect, hook, known);
    if (known.error !== undefined) return { error: known.error };
    const restore = hook.restore ?? (async (kept: Json) => kept as Value);
    // null stands for undefined in JSON: a handler that answered nothing answers nothing again.
    return { value: known.kept === undefined ? (undefined as Value) : await restore(known.kept) };
  }
  const started = performance.now();
  const { answer, attempts } = await attempt(effect, hook);
  const durationMs = Math.round(performance.now() - started);
  const record: Kept = { ...(await toKept(hook, answer)), outcome: outcomeOf(hook, answer), durationMs, attempts };
  if (known === undefined) {
    if (hook.soon) effect.saveStepSoon(name, record as unknown as Json);
    else await effect.saveStep(name, record as unknown as Json);
  }
  note(effect, hook, record);
  return answer;
}

/** What was kept of the handler's answer to an earlier attempt; undefined when there is none, or it was an error. */
export function keptAnswer(
  effect: Effect,
  hook: Pick<HookCall<unknown>, 'hook' | 'handler' | 'about'>,
): Json | undefined {
  return (effect.step(stepName(hook)) as unknown as Kept | undefined)?.kept;
}

function stepName({ hook, handler, about }: Pick<HookCall<unknown>, 'hook' | 'handler' | 'about'>): string {
  return ['hook', hook, handler, ...(about === undefined ? [] : [about])].join('/');
}

/** The same for a hook whose error ends the run. @throws EverturnError `hook`, or `cancelled` on an abort; not retryable */
export async function callHook<Value>(effect: Effect, hook: HookCall<Value>): Promise<Value> {
  const answer = await askHook(effect, hook);
  if (!('error' in answer)) return answer.value;
  // The effect ends here: what its handlers did is told all the same.
  await effect.commit({});
  if (effect.stopReason() === 'abort') throw new EverturnError('cancelled', 'Operation aborted');
  throw normalizeHookError(hook.hook, new Error(answer.error));
}

async function toKept<Value>(
  hook: HookCall<Value>,
  answer: HookAnswer<Value>,
): Promise<Pick<Kept, 'kept' | 'error' | 'again'>> {
  if ('error' in answer) return { error: answer.error };
  if (answer.value === undefined) return {};
  const kept = hook.keep === undefined ? (answer.value as Json) : await hook.keep(answer.value);
  return kept === askAgain ? { again: true } : { kept };
}

function outcomeOf<Value>(hook: HookCall<Value>, answer: HookAnswer<Value>): Json {
  if ('error' in answer) return { error: answer.error };
  return answer.value === undefined ? null : hook.describe(answer.value);
}

async function attempt<Value>(
  effect: Effect,
  hook: HookCall<Value>,
): Promise<{ answer: HookAnswer<Value>; attempts: number }> {
  const { attempts = defaultAttempts, delayMs = defaultDelayMs } = hook.settings ?? {};
  for (let tried = 1; ; tried++) {
    try {
      const ended = await raceGrace(
        withCaller(callerOf(effect), async () => hook.call()),
        effect,
      );
      if (ended.kind === 'returned') return { answer: { value: ended.value }, attempts: tried };
      throw ended.kind === 'threw' ? ended.error : new Error(`Hook ${hook.hook} did not return after its signal.`);
    } catch (error) {
      // A worker that stops leaves the question to the next attempt of the effect; an abort wants no second try.
      const stopped = effect.stopReason();
      if (stopped === 'shutdown' || stopped === 'lost') throw error;
      const final = stopped === 'abort' || tried >= attempts || error instanceof NonRetryableHookError;
      if (final) return { answer: { error: errorText(error) }, attempts: tried };
      await delay(delayMs * 2 ** (tried - 1), undefined, { signal: effect.signal, ref: false }).catch(() => {});
    }
  }
}

/** Whom hooks and tools of an effect work for. */
export function callerOf({ signal, fence: { sessionId, runId } }: Effect): Caller {
  return { signal, sessionId, ...(runId === undefined ? {} : { runId }) };
}

function note<Value>(effect: Effect, hook: HookCall<Value>, { outcome, durationMs, attempts }: Kept): void {
  const about = hook.about === undefined ? '' : `/${hook.about}`;
  effect.note({
    kind: 'event',
    key: `${effect.fence.effect}/hook/${hook.hook}/${hook.handler}${about}`,
    event: { type: 'hook', hook: hook.hook, handler: hook.handler, outcome, durationMs, attempt: attempts },
  });
}

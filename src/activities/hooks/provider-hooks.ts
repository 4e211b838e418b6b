import type { Api, Model } from '@earendil-works/pi-ai';
import type { Agent, StreamSettings } from '../../agent/agent.ts';
import { canonicalJson, type Json } from '../../common/json.ts';
import type { AgentHarnessStreamOptions } from '../../hooks/harness-types.ts';
import { patchStreamOptions } from '../../hooks/reducers.ts';
import { putJson, readJson } from '../blobs.ts';
import type { Effect } from '../effect.ts';
import type { Runtime } from '../runtime.ts';
import { keepListChange, restoreList } from './list-change.ts';
import { askAgain, callHook } from './run-hook.ts';

/**
 * before_provider_request: every handler sees the options as patched so far. The patched options are kept, but for values
 * of headers, which may be credentials: a handler that sets headers is asked again by a retry.
 */
export async function prepareOptions(effect: Effect, agent: Agent, model: Model<Api>): Promise<StreamSettings> {
  const { temperature, maxTokens, ...rest } = agent.streamOptions;
  let options: AgentHarnessStreamOptions = rest;
  for (const [handler, { handler: ask, settings }] of agent.registry.handlers('before_provider_request').entries()) {
    const before = options;
    const call = async () => {
      const streamOptions = structuredClone(before);
      const { sessionId } = effect.fence;
      const event = { type: 'before_provider_request', model, sessionId, streamOptions } as const;
      const patch = (await ask(event, effect.signal))?.streamOptions;
      return patch === undefined ? before : patchStreamOptions(before, patch);
    };
    options = await callHook(effect, {
      hook: 'before_provider_request',
      handler,
      soon: true,
      settings,
      call,
      keep: async ({ headers, ...kept }) => {
        const sameHeaders = canonicalJson(headers ?? {}) === canonicalJson(before.headers ?? {});
        return sameHeaders ? (kept as unknown as Json) : askAgain;
      },
      restore: async (kept) => {
        const rest = kept as unknown as AgentHarnessStreamOptions;
        return before.headers === undefined ? rest : { ...rest, headers: before.headers };
      },
      // The log has the names of headers alone.
      describe: (after) => ({ changed: changedKeys(before, after) }),
    });
  }
  return {
    ...options,
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
  };
}

/**
 * before_provider_payload, as pi-ai's onPayload: the chain's result, or undefined when no handler changed it. What a
 * handler made of the payload is kept as a difference, so a retry sends the same without asking again.
 */
export function payloadHook(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
): ((payload: unknown, model: Model<Api>) => Promise<unknown>) | undefined {
  const handlers = agent.registry.handlers('before_provider_payload');
  if (handlers.length === 0) return undefined;
  return async (payload, model) => {
    let current = payload;
    for (const [handler, { handler: ask, settings }] of handlers.entries()) {
      const before = current;
      const texts = keyTexts(before);
      current = await callHook(effect, {
        hook: 'before_provider_payload',
        handler,
        soon: true,
        settings,
        call: async () => {
          const answer = await ask({ type: 'before_provider_payload', model, payload: before });
          return answer === undefined ? before : answer.payload;
        },
        keep: (after) => keepPayload(runtime, before, texts, after),
        restore: (kept) => restorePayload(runtime, before, kept),
        describe: (after) => ({ changed: changedPayloadKeys(texts, after) }),
      });
    }
    await effect.kept();
    return current;
  };
}

type Texts = Map<string, string> | undefined;
type KeptPayload =
  | { whole: string }
  | { lists: Record<string, Json>; values: Record<string, string>; removed: string[] };

/** Texts of the top-level keys before a handler ran: it may change the payload in place. */
function keyTexts(payload: unknown): Texts {
  if (!isPlain(payload)) return undefined;
  return new Map(Object.entries(payload).map(([key, value]) => [key, canonicalJson(value) ?? '']));
}

function changedPayloadKeys(texts: Texts, after: unknown): string[] {
  if (texts === undefined || !isPlain(after)) return ['*'];
  const keys = new Set([...texts.keys(), ...Object.keys(after)]);
  return [...keys].filter((key) => texts.get(key) !== (key in after ? (canonicalJson(after[key]) ?? '') : undefined));
}

async function keepPayload(runtime: Runtime, before: unknown, texts: Texts, after: unknown): Promise<Json> {
  if (texts === undefined || !isPlain(after) || !isPlain(before)) return { whole: await putJson(runtime, after) };
  const kept: Extract<KeptPayload, { lists: unknown }> = { lists: {}, values: {}, removed: [] };
  for (const key of changedPayloadKeys(texts, after)) {
    const value = after[key];
    if (!(key in after)) kept.removed.push(key);
    // In place the old list is gone: only a new one can be kept as a difference.
    else if (
      Array.isArray(value) &&
      Array.isArray(before[key]) &&
      value !== before[key] &&
      texts.get(key) === canonicalJson(before[key])
    ) {
      kept.lists[key] = await keepListChange(runtime, before[key] as unknown[], value);
    } else kept.values[key] = await putJson(runtime, value);
  }
  return kept as unknown as Json;
}

async function restorePayload(runtime: Runtime, before: unknown, json: Json): Promise<unknown> {
  const kept = json as unknown as KeptPayload;
  if ('whole' in kept) return readJson(runtime, kept.whole);
  const payload: Record<string, unknown> = { ...(before as Record<string, unknown>) };
  for (const key of kept.removed) delete payload[key];
  for (const [key, change] of Object.entries(kept.lists))
    payload[key] = await restoreList(runtime, payload[key] as unknown[], change);
  for (const [key, digest] of Object.entries(kept.values)) payload[key] = await readJson(runtime, digest);
  return payload;
}

function changedKeys(before: object, after: object): string[] {
  const left = before as Record<string, unknown>;
  const right = after as Record<string, unknown>;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...keys].filter((key) => canonicalJson(left[key]) !== canonicalJson(right[key]));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

import type {
  LoadContextInput,
  LoadContextResult,
  QueueHookInput,
  QueueHookResult,
  SaveContextInput,
  SaveContextResult,
} from '../common/effects.ts';
import { putJson } from './blobs.ts';
import { runEffect } from './effect.ts';
import { askQueueHook } from './hooks/queue-hooks.ts';
import { afterBase, readBase, runSystemPrompt } from './model/build-request.ts';
import { agentOf, type Runtime } from './runtime.ts';

/** The context so far, for policies: once per run and workflow run, claim-checked when it is large. */
export function loadContext(runtime: Runtime, input: LoadContextInput): Promise<LoadContextResult> {
  const place = { effect: `${input.runId}/load-context`, runId: input.runId };
  return runEffect(runtime, place, async (effect) => {
    const agent = agentOf(runtime, input.agent);
    const { sessionId } = effect.fence;
    const session = await runtime.store.readSession(sessionId);
    const items = await runtime.contexts.read(sessionId, session?.leaf ?? null);
    const base = input.base === undefined ? undefined : await readBase(runtime, input.base.digest);
    const messages =
      base === undefined ? items.map((item) => item.message) : [...base.messages, ...afterBase(items, input)];
    const first = items.findIndex((item) => item.entryId.startsWith(`${input.runId}/`));
    const newMessages = first < 0 ? 0 : Math.min(messages.length, items.length - first);
    const systemPrompt = base?.systemPrompt ?? (await runSystemPrompt(runtime, effect, agent, input));
    await effect.kept();
    return { systemPrompt, messages, newMessages };
  });
}

/** Keeps a context that a policy returned: from now on it travels by digest. */
export function saveContext(runtime: Runtime, input: SaveContextInput): Promise<SaveContextResult> {
  const place = { effect: `${input.runId}/t${input.turn}/save-context`, runId: input.runId, turn: input.turn };
  return runEffect(runtime, place, async (effect) => {
    const session = await runtime.store.readSession(effect.fence.sessionId);
    const { systemPrompt, messages } = input;
    const digest = await putJson(runtime, { systemPrompt, messages });
    const result: SaveContextResult = { digest, afterEntryId: session?.leaf ?? null };
    await effect.commit({ result: { ...result } });
    return result;
  });
}

/** Asks an agent's queue hook where no turn is sure to follow: its answer decides whether the run goes on. */
export function pollQueueHook(runtime: Runtime, input: QueueHookInput): Promise<QueueHookResult> {
  const place = { effect: `${input.runId}/queue/${input.poll}`, runId: input.runId, turn: input.turn };
  return runEffect(runtime, place, async (effect) => {
    const agent = agentOf(runtime, input.agent);
    const name = input.queue === 'steer' ? 'getSteeringMessages' : 'getFollowUpMessages';
    const asked = await askQueueHook(effect, agent, name);
    await effect.commit({ result: JSON.parse(JSON.stringify({ messages: asked })) });
    return { messages: asked };
  });
}

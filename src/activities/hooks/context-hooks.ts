import type { Agent } from '../../agent/agent.ts';
import type { Json } from '../../common/json.ts';
import type { AgentMessage, Message } from '../../common/messages.ts';
import { defaultConvertToLlm } from '../../session/convert.ts';
import type { Effect } from '../effect.ts';
import type { Runtime } from '../runtime.ts';
import { keepListChange, restoreList } from './list-change.ts';
import { callHook, type HookCall } from './run-hook.ts';

/**
 * What the model is to see of the transcript: transformContext, the handlers of context in subscription order, each of
 * what the one before returned, then convertToLlm. The messages are frozen: a hook returns changed copies.
 */
export async function prepareMessages(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  context: AgentMessage[],
): Promise<Message[]> {
  let messages = context;
  const { transformContext, convertToLlm, hookSettings } = agent;
  if (transformContext !== undefined) {
    const before = messages;
    messages = await callHook(effect, {
      ...listHook(runtime, 'transformContext', 0, before),
      settings: hookSettings.transformContext,
      call: async () => checkList('transformContext', await transformContext([...before], effect.signal)),
    });
  }
  for (const [index, { handler, settings }] of agent.registry.handlers('context').entries()) {
    const before = messages;
    messages = await callHook(effect, {
      ...listHook(runtime, 'context', index, before),
      settings,
      call: async () =>
        checkList('context', (await handler({ type: 'context', messages: [...before] }))?.messages ?? before),
    });
  }
  if (convertToLlm === undefined) return defaultConvertToLlm(messages);
  const before = messages;
  return callHook(effect, {
    ...listHook(runtime, 'convertToLlm', 0, before as Message[]),
    settings: hookSettings.convertToLlm,
    call: async () => checkList('convertToLlm', await convertToLlm([...before])),
  });
}

function listHook<Item>(
  runtime: Runtime,
  hook: string,
  handler: number,
  before: readonly Item[],
): Pick<HookCall<Item[]>, 'hook' | 'handler' | 'keep' | 'restore' | 'describe' | 'soon'> {
  return {
    hook,
    handler,
    soon: true,
    keep: (after) => keepListChange(runtime, before, after),
    restore: (kept: Json) => restoreList(runtime, before, kept),
    describe: (after) => ({ before: before.length, after: after.length }),
  };
}

function checkList<Item>(hook: string, list: Item[]): Item[] {
  if (Array.isArray(list)) return list;
  throw new Error(`it must return a list of messages, it returned ${list === null ? 'null' : typeof list}`, {
    cause: hook,
  });
}

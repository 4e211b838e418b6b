import type { Agent } from '../../agent/agent.ts';
import type {
  AgentHarnessEventMap,
  AgentHarnessEventResultMap,
  AgentHarnessHandler,
  SessionBeforeCompactResult,
  SessionBeforeTreeResult,
} from '../../hooks/harness-types.ts';
import { reduceSessionResults } from '../../hooks/reducers.ts';
import type { Effect } from '../effect.ts';
import { callHook } from './run-hook.ts';

type SessionEventName = 'session_before_compact' | 'session_before_tree';

/** The event as its caller knows it: type and signal are added here. */
type Facts<Name extends SessionEventName> = Omit<AgentHarnessEventMap[Name], 'type' | 'signal'>;

/**
 * Asks the handlers of session_before_compact or session_before_tree before anything is written: up to the first that
 * cancels; else the last answer counts. Each sees the same event, in an object of its own. `about` tells the askings of
 * one effect apart.
 * @throws EverturnError `hook` when a handler threw to the last, `cancelled` on an abort
 */
export async function askSessionHook<Name extends SessionEventName>(
  effect: Effect,
  agent: Agent,
  name: Name,
  facts: Facts<Name>,
  about?: string,
): Promise<AgentHarnessEventResultMap[Name] | undefined> {
  type Result = SessionBeforeCompactResult | SessionBeforeTreeResult;
  let last: Result | undefined;
  for (const [handler, entry] of agent.registry.handlers(name).entries()) {
    const ask = entry.handler as AgentHarnessHandler<SessionEventName>;
    const answer = await callHook<Result | undefined>(effect, {
      hook: name,
      handler,
      settings: entry.settings,
      ...(about === undefined ? {} : { about }),
      call: async () => {
        const event = { ...structuredClone(facts), type: name, signal: effect.signal };
        return (await ask(event as never, effect.signal)) ?? undefined;
      },
      describe: (result) => ({
        ...(result?.cancel === true ? { cancel: true } : {}),
        returned: Object.keys(result ?? {}).filter((key) => key !== 'cancel'),
      }),
    });
    const { value, stop } = reduceSessionResults(last, answer);
    last = value;
    if (stop) break;
  }
  return last as AgentHarnessEventResultMap[Name] | undefined;
}

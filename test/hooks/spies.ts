import type { Agent, AgentOptions } from '../../src/agent/agent.ts';
import type { SessionEvent } from '../../src/common/events.ts';
import type { AgentMessage, ImageContent } from '../../src/common/messages.ts';
import { currentSession } from '../../src/hooks/current-signal.ts';
import type { AgentHarnessHandler } from '../../src/hooks/harness-types.ts';
import type { HookSettings } from '../../src/hooks/types.ts';
import type { Commit, Fence, Store } from '../../src/store/types.ts';
import { type Harness, type Talk, testAgent } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

export const agentLayer = [
  'transformContext',
  'convertToLlm',
  'beforeToolCall',
  'afterToolCall',
  'getSteeringMessages',
  'getFollowUpMessages',
] as const;
export const harnessLayer = [
  'before_agent_start',
  'context',
  'tool_call',
  'tool_result',
  'before_provider_request',
  'before_provider_payload',
] as const;
export type SpiedHook = (typeof agentLayer)[number] | (typeof harnessLayer)[number];

/** One call of a hook: "context#1" is the second handler of context. */
export interface Asked {
  hook: string;
  args: unknown[];
  agentSignal: AbortSignal | undefined;
}

type Plan = (...args: never[]) => unknown;

/** What the hooks of an agent were asked, and what they are to do, by session. */
export class Spies {
  private readonly asked = new Map<string, Asked[]>();
  private readonly plans = new Map<string, Plan>();

  of(talk: Pick<Talk, 'sessionId'>): Asked[] {
    return this.asked.get(talk.sessionId) ?? [];
  }

  names(talk: Pick<Talk, 'sessionId'>): string[] {
    return this.of(talk).map(({ hook }) => hook);
  }

  count(talk: Pick<Talk, 'sessionId'>, hook: string): number {
    return this.names(talk).filter((name) => name === hook).length;
  }

  /** What a hook does in one session; without a plan it lets everything be as it is. */
  plan(talk: Pick<Talk, 'sessionId'>, hook: string, plan: Plan): void {
    this.plans.set(`${talk.sessionId} ${hook}`, plan);
  }

  ask(agent: Agent, hook: string, args: unknown[]): unknown {
    const { sessionId = 'none' } = currentSession() ?? {};
    const calls = this.asked.get(sessionId) ?? [];
    this.asked.set(sessionId, calls);
    const seen = args.map((arg) => (arg instanceof AbortSignal ? arg : structuredClone(arg)));
    calls.push({ hook, args: seen, agentSignal: agent.signal });
    return this.plans.get(`${sessionId} ${hook}`)?.(...(args as never[]));
  }
}

export interface SpiedOptions extends Partial<AgentOptions> {
  /** Settings of each hook, of both layers. */
  settings?: HookSettings;
}

/** An agent all of whose hooks are spied on: the agent layer's once, of the harness layer's two handlers each. */
export function spiedAgent(
  name: string,
  harness: Harness,
  spies: Spies,
  { settings = { delayMs: 1 }, ...options }: SpiedOptions = {},
): Agent {
  const ask = (hook: string, args: unknown[]) => spies.ask(agent, hook, args);
  const { local: _, ...own } = settings;
  const agent: Agent = testAgent(name, {
    tools: loopTools(harness),
    hookSettings: Object.fromEntries(agentLayer.map((hook) => [hook, hook === 'beforeToolCall' ? settings : own])),
    transformContext: async (...args) => ((await ask('transformContext', args)) ?? args[0]) as AgentMessage[],
    convertToLlm: async (...args) => ((await ask('convertToLlm', args)) ?? args[0]) as never,
    beforeToolCall: async (...args) => (await ask('beforeToolCall', args)) as never,
    afterToolCall: async (...args) => (await ask('afterToolCall', args)) as never,
    getSteeringMessages: async (...args) => ((await ask('getSteeringMessages', args)) ?? []) as never,
    getFollowUpMessages: async (...args) => ((await ask('getFollowUpMessages', args)) ?? []) as never,
    ...options,
  });
  for (const event of harnessLayer) {
    for (const number of [0, 1]) {
      const handler = async (...args: unknown[]) => ask(`${event}#${number}`, args);
      agent.on(
        event,
        handler as AgentHarnessHandler<typeof event>,
        event === 'tool_call' || event === 'before_agent_start' ? settings : own,
      );
    }
  }
  return agent;
}

/**
 * A store under which the first commit that would finish an effect fails for the sessions in `failing`: everything of the
 * effect was done, hooks too, and Temporal makes it do it again.
 */
export function failingOnce(failing: Set<string>): (store: Store) => Store {
  const failed = new Set<string>();
  return (store) => ({
    ...store,
    async commit(fence: Fence, parts: Commit) {
      const key = `${fence.sessionId} ${fence.effect}`;
      if (parts.result !== undefined && failing.has(fence.sessionId) && !failed.has(key)) {
        failed.add(key);
        throw new Error('a defect, this time');
      }
      return store.commit(fence, parts);
    },
  });
}

export const image: ImageContent = { type: 'image', data: 'aGk=', mimeType: 'image/png' };

export function note(text: string): AgentMessage {
  return { role: 'user', content: [{ type: 'text', text }], timestamp: 1 };
}

/** The `hook` events of a session: hook, handler, decision and tries. */
export async function hookEvents(talk: Talk, hook?: string): Promise<Extract<SessionEvent, { type: 'hook' }>[]> {
  const events = await talk.raw();
  return events.flatMap((event) =>
    event.type === 'hook' && (hook === undefined || event.hook === hook) ? [event] : [],
  );
}

import { EverturnError } from '../common/errors.ts';
import type { AgentHarnessEventName, AgentHarnessHandler } from './harness-types.ts';
import type { HookSettings } from './types.ts';

export interface Registered<Name extends AgentHarnessEventName> {
  handler: AgentHarnessHandler<Name>;
  settings: HookSettings;
}

type Handlers = { [Name in AgentHarnessEventName]: Registered<Name>[] };

const names: readonly AgentHarnessEventName[] = [
  'before_agent_start',
  'context',
  'tool_call',
  'tool_result',
  'session_before_compact',
  'session_before_tree',
  'before_provider_request',
  'before_provider_payload',
  'tool_update',
];

/**
 * The handlers of one agent, in subscription order. Gates (before_agent_start, tool_call) are looked up when a workflow run
 * opens the session: one that is registered later counts from the next workflow run on. All others count at once.
 */
export class HookRegistry {
  private readonly registered = Object.fromEntries(names.map((name) => [name, []])) as unknown as Handlers;

  /** Adds a handler; the same function for the same event counts once. Returns what takes it away again. */
  on<Name extends AgentHarnessEventName>(
    name: Name,
    handler: AgentHarnessHandler<Name>,
    settings: HookSettings = {},
  ): () => void {
    if (!names.includes(name)) {
      throw new EverturnError(
        'invalid_config',
        `on: there is no hook event "${name}", there are: ${names.join(', ')}.`,
      );
    }
    if (typeof handler !== 'function')
      throw new EverturnError('invalid_config', `on("${name}"): the handler must be a function.`);
    const list = this.handlers(name) as Registered<Name>[];
    const entry: Registered<Name> = { handler, settings };
    if (!list.some((known) => known.handler === handler)) list.push(entry);
    return () => {
      const index = list.indexOf(entry);
      if (index >= 0) list.splice(index, 1);
    };
  }

  handlers<Name extends AgentHarnessEventName>(name: Name): readonly Registered<Name>[] {
    return this.registered[name];
  }
}

import { z } from 'zod';
import { EverturnError } from '../common/errors.ts';
import type { AgentHarnessEventName, AgentHarnessHandler } from './harness-types.ts';
import type { HookSettings } from './types.ts';

/** Of `HookSettings`. */
export const hookSettingsSchema = z.strictObject({
  attempts: z.number().int().min(1).max(100).exactOptional(),
  delayMs: z.number().int().min(0).exactOptional(),
  local: z.boolean().exactOptional(),
});

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
  private readonly added = new Map<AgentHarnessEventName, Set<unknown>>();
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
    const checked = hookSettingsSchema.safeParse(settings);
    if (!checked.success) {
      const issue = checked.error.issues[0];
      throw new EverturnError('invalid_config', `on("${name}"): settings: ${issue?.path.join('.')}: ${issue?.message}`);
    }
    const list: Registered<Name>[] = this.registered[name];
    const entry = list.find((known) => known.handler === handler) ?? { handler, settings: checked.data };
    if (!list.includes(entry)) list.push(entry);
    this.added.set(name, (this.added.get(name) ?? new Set()).add(handler));
    return () => {
      const index = list.indexOf(entry);
      if (index >= 0) list.splice(index, 1);
    };
  }

  /** How many handlers this process has had: one that was taken away on purpose is not one that its code lacks. */
  known(name: AgentHarnessEventName): number {
    return this.added.get(name)?.size ?? 0;
  }

  /** As they stand now: a handler that is taken away while the list is gone through is called this once more. */
  handlers<Name extends AgentHarnessEventName>(name: Name): readonly Registered<Name>[] {
    return [...this.registered[name]];
  }
}

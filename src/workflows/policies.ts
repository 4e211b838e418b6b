import type { LoadContextResult } from '../common/effects.ts';
import { EverturnError, errorText } from '../common/errors.ts';
import type { AgentManifest } from '../common/manifest.ts';
import type { AgentMessage, AssistantMessage, ToolResultMessage } from '../common/messages.ts';
import type {
  AgentContext,
  AgentLoopTurnUpdate,
  Policy,
  PrepareRequestContext,
  ShouldStopAfterTurnContext,
} from '../common/policy.ts';
import { idSchema, modelRefSchema, thinkingLevelSchema } from '../common/signals.ts';

// Filled once while the bundle loads, and only read afterwards: it is the same for every workflow and every replay.
const policies = new Map<string, Policy>();

const policyHooks: readonly string[] = [
  'shouldStopAfterTurn',
  'prepareNextTurn',
  'finishTurn',
  'prepareRequest',
] satisfies (keyof Policy)[];

/**
 * Gives an agent its policies, in the workflows file: `definePolicy('coder', { shouldStopAfterTurn, prepareNextTurn })`.
 * They are workflow code: deterministic, without I/O. Changing what they decide for running sessions needs `patched`.
 * @throws EverturnError `invalid_config`
 */
export function definePolicy(agent: string, policy: Policy): void {
  if (!idSchema.safeParse(agent).success)
    throw new EverturnError('invalid_config', `definePolicy: "${agent}" is no agent name`);
  if (policies.has(agent))
    throw new EverturnError('invalid_config', `definePolicy: agent "${agent}" has a policy already`);
  const unknown = Object.keys(policy).find((key) => !policyHooks.includes(key));
  if (unknown !== undefined) {
    throw new EverturnError(
      'invalid_config',
      `definePolicy("${agent}"): unknown key "${unknown}"; a policy has ${policyHooks.join(', ')}`,
    );
  }
  policies.set(agent, policy);
}

export function policyOf(agent: string): Policy | undefined {
  return policies.get(agent);
}

/**
 * What policies see of a run. Each message enters the workflow once, in the result that made it. Lost at
 * continue-as-new, and loaded again from the store.
 */
export interface PolicyView {
  context: AgentContext;
  newMessages: AgentMessage[];
}

export function newView(loaded: LoadContextResult, manifest: AgentManifest, activeTools: string[] | null): PolicyView {
  const tools = manifest.tools
    .filter((tool) => activeTools === null || activeTools.includes(tool.name))
    .map(({ name, description }) => ({ name, description }));
  const newMessages = loaded.newMessages === 0 ? [] : loaded.messages.slice(-loaded.newMessages);
  return { context: { systemPrompt: loaded.systemPrompt, messages: loaded.messages, tools }, newMessages };
}

export function addToView(view: PolicyView, messages: readonly AgentMessage[]): void {
  view.context.messages.push(...messages);
  view.newMessages.push(...messages);
}

/** Takes messages out again that were added too early. */
export function dropFromView(view: PolicyView, messages: readonly AgentMessage[]): void {
  const dropped = new Set(messages);
  view.context.messages = view.context.messages.filter((message) => !dropped.has(message));
  view.newMessages = view.newMessages.filter((message) => !dropped.has(message));
}

export interface TurnDecision {
  stop: boolean;
  /** True: one more request, even if neither calls nor messages ask for it. */
  again: boolean;
  update: AgentLoopTurnUpdate | undefined;
}

/**
 * finishTurn and shouldStopAfterTurn, then prepareNextTurn if the run goes on: the order of the hook-system document.
 * @throws EverturnError `policy` for whatever a policy throws or returns in the wrong shape: it ends the run, not the
 * workflow task, which Temporal would retry for ever.
 */
export async function decideTurn(
  agent: string,
  policy: Policy,
  view: PolicyView,
  message: AssistantMessage,
  toolResults: ToolResultMessage[],
): Promise<TurnDecision> {
  const context = (): ShouldStopAfterTurnContext => ({
    message,
    toolResults,
    context: copyOf(view.context),
    newMessages: [...view.newMessages],
  });
  const finish = await guarded(agent, 'finishTurn', async () => policy.finishTurn?.(context()));
  const again = finish?.action === 'continue';
  if (finish?.action === 'end') return { stop: true, again: false, update: undefined };
  if (await guarded(agent, 'shouldStopAfterTurn', async () => policy.shouldStopAfterTurn?.(context()))) {
    return { stop: true, again: false, update: undefined };
  }
  const update = await guarded(agent, 'prepareNextTurn', async () => policy.prepareNextTurn?.(context()));
  return { stop: false, again, update: checkUpdate(agent, 'prepareNextTurn', update) };
}

/** prepareRequest, before a request. @throws EverturnError `policy`, as decideTurn */
export async function decideRequest(
  agent: string,
  policy: Policy,
  view: PolicyView,
  settings: Pick<PrepareRequestContext, 'model' | 'thinkingLevel'>,
): Promise<AgentLoopTurnUpdate | undefined> {
  const context = { context: copyOf(view.context), ...settings };
  const update = await guarded(agent, 'prepareRequest', async () => policy.prepareRequest?.(context));
  return checkUpdate(agent, 'prepareRequest', update);
}

function copyOf(context: AgentContext): AgentContext {
  return { ...context, messages: [...context.messages] };
}

export function modelRef(model: NonNullable<AgentLoopTurnUpdate['model']>): string {
  return typeof model === 'string' ? model : `${model.provider ?? ''}/${model.id ?? ''}`;
}

async function guarded<T>(agent: string, hook: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw new EverturnError('policy', `${hook} of agent "${agent}" threw: ${errorText(error)}`, {
      cause: error,
      details: { agent, hook },
    });
  }
}

function checkUpdate(
  agent: string,
  hook: string,
  update: AgentLoopTurnUpdate | undefined,
): AgentLoopTurnUpdate | undefined {
  if (update === undefined || update === null) return undefined;
  const wrong = (what: string) =>
    new EverturnError('policy', `${hook} of agent "${agent}" returned ${what}`, { details: { agent, hook } });
  if (typeof update !== 'object') throw wrong('no object; return { context?, model?, thinkingLevel? } or undefined');
  if (update.model !== undefined && !modelRefSchema.safeParse(modelRef(update.model)).success) {
    throw wrong('a model that is neither "provider/id" nor an object with provider and id');
  }
  if (update.thinkingLevel !== undefined && !thinkingLevelSchema.safeParse(update.thinkingLevel).success) {
    throw wrong(`an unknown thinking level "${String(update.thinkingLevel)}"`);
  }
  if (update.context !== undefined && !isContext(update.context)) {
    throw wrong('a context that is not { systemPrompt, messages, tools? } with a role in each message');
  }
  return update;
}

function isContext(context: Partial<AgentContext> | null): boolean {
  if (typeof context?.systemPrompt !== 'string' || !Array.isArray(context.messages)) return false;
  const named = (item: unknown, key: string) => typeof (item as Record<string, unknown> | null)?.[key] === 'string';
  const tools: unknown = context.tools ?? [];
  return (
    context.messages.every((message) => named(message, 'role')) &&
    Array.isArray(tools) &&
    tools.every((tool) => named(tool, 'name'))
  );
}

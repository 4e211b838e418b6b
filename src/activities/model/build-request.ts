import { createHash } from 'node:crypto';
import type { Message, Tool as PiTool, SimpleStreamOptions } from '@earendil-works/pi-ai';
import type { Agent } from '../../agent/agent.ts';
import type { ModelInput } from '../../common/effects.ts';
import { EverturnError } from '../../common/errors.ts';
import { canonicalJson } from '../../common/json.ts';
import type { AgentMessage } from '../../common/messages.ts';
import type { ContextItem } from '../../session/context-cache.ts';
import type { RequestRecord } from '../../store/types.ts';
import type { Effect } from '../effect.ts';
import { callHook } from '../hook-call.ts';
import type { Runtime } from '../runtime.ts';

/** What one request is made of, without credentials. */
export interface PreparedRequest {
  systemPrompt: string;
  messages: Message[];
  tools: PiTool[];
  options: SimpleStreamOptions;
}

interface Frame {
  systemPrompt: string;
  tools: PiTool[];
  model: string;
  options: SimpleStreamOptions;
}

/**
 * Builds the request in the document's order (transformContext, convertToLlm) and keeps it in the store before anything
 * is sent: a retry sends the same, without asking the hooks again.
 */
export async function buildRequest(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  items: ContextItem[],
): Promise<PreparedRequest> {
  const { sessionId } = effect.fence;
  if (effect.attempt > 1) {
    const kept = await runtime.store.readRequest(sessionId, input.runId, input.turn);
    if (kept !== undefined) return restoreRequest(runtime, sessionId, kept, items);
  }
  const base = input.base === undefined ? undefined : await readBase(runtime, input.base.digest);
  const context =
    base === undefined ? items.map((item) => item.message) : [...base.messages, ...afterBase(items, input)];
  const transformed =
    agent.transformContext === undefined
      ? context
      : await callHook(
          'transformContext',
          effect.signal,
          async () => agent.transformContext?.([...context], effect.signal) ?? context,
        );
  const messages =
    agent.convertToLlm === undefined
      ? (transformed.filter(isLlmMessage) as Message[])
      : await callHook('convertToLlm', effect.signal, async () => agent.convertToLlm?.([...transformed]) ?? []);
  const frame = await makeFrame(effect, agent, input, base?.systemPrompt);
  const record = await toRecord(runtime, input, messages, items, frame);
  await effect.commit({ request: record });
  return { ...frame, messages };
}

/** The list of messages and the context base as the store keeps it for policies. */
export async function readBase(
  runtime: Runtime,
  digest: string,
): Promise<{ systemPrompt: string; messages: AgentMessage[] }> {
  return (await readJson(runtime, digest)) as { systemPrompt: string; messages: AgentMessage[] };
}

export async function putJson(runtime: Runtime, value: unknown): Promise<string> {
  const data = Buffer.from(canonicalJson(value));
  const digest = createHash('sha256').update(data).digest('hex');
  await runtime.store.putBlob(digest, data);
  return digest;
}

export async function readJson(runtime: Runtime, digest: string): Promise<unknown> {
  const data = await runtime.store.getBlob(digest);
  if (data === undefined) throw new EverturnError('store', `Blob ${digest} is not in the store.`);
  return JSON.parse(Buffer.from(data).toString('utf8'));
}

export function afterBase(items: ContextItem[], { base }: Pick<ModelInput, 'base'>): AgentMessage[] {
  const at = items.findIndex((item) => item.entryId === base?.afterEntryId);
  return items.slice(at + 1).map((item) => item.message);
}

/** The tools that are active in this session. */
export function activeToolsOf(agent: Agent, activeTools: readonly string[] | null): Agent['tools'] {
  return activeTools === null ? agent.tools : agent.tools.filter((tool) => activeTools.includes(tool.name));
}

/** The system prompt of the agent as it stands now. */
export async function systemPromptOf(
  effect: Pick<Effect, 'signal' | 'fence'>,
  agent: Agent,
  settings: Pick<ModelInput, 'model' | 'thinkingLevel' | 'activeTools'>,
): Promise<string> {
  const { systemPrompt } = agent;
  if (typeof systemPrompt === 'string') return systemPrompt;
  const activeTools = activeToolsOf(agent, settings.activeTools).map((tool) => tool.name);
  const { model, thinkingLevel } = settings;
  return callHook('systemPrompt', effect.signal, () =>
    systemPrompt({ sessionId: effect.fence.sessionId, model, thinkingLevel, activeTools }),
  );
}

function isLlmMessage(message: AgentMessage): boolean {
  return message.role === 'user' || message.role === 'assistant' || message.role === 'toolResult';
}

async function makeFrame(
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  systemPrompt: string | undefined,
): Promise<Frame> {
  const tools = activeToolsOf(agent, input.activeTools).map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }));
  const reasoning = input.thinkingLevel === 'off' ? {} : { reasoning: input.thinkingLevel };
  return {
    systemPrompt: systemPrompt ?? (await systemPromptOf(effect, agent, input)),
    tools,
    model: input.model,
    options: { ...agent.stream, ...reasoning, sessionId: effect.fence.sessionId },
  };
}

async function toRecord(
  runtime: Runtime,
  input: ModelInput,
  messages: Message[],
  items: ContextItem[],
  frame: Frame,
): Promise<RequestRecord> {
  const entries = new Map<AgentMessage, string>(items.map((item) => [item.message, item.entryId]));
  const refs: RequestRecord['messages'] = [];
  for (const message of messages) {
    const entry = entries.get(message as AgentMessage);
    refs.push(entry === undefined ? { blob: await putJson(runtime, message) } : { entry });
  }
  return { runId: input.runId, turn: input.turn, messages: refs, frame: await putJson(runtime, frame) };
}

async function restoreRequest(
  runtime: Runtime,
  sessionId: string,
  kept: RequestRecord,
  items: ContextItem[],
): Promise<PreparedRequest> {
  const known = new Map(items.map((item) => [item.entryId, item.message]));
  const messages: Message[] = [];
  for (const ref of kept.messages) {
    if ('blob' in ref) messages.push((await readJson(runtime, ref.blob)) as Message);
    else messages.push((known.get(ref.entry) ?? (await readMessage(runtime, sessionId, ref.entry))) as Message);
  }
  const frame = (await readJson(runtime, kept.frame)) as Frame;
  return { ...frame, messages };
}

async function readMessage(runtime: Runtime, sessionId: string, entryId: string): Promise<AgentMessage> {
  const [entry] = await runtime.store.readEntries(sessionId, [entryId]);
  if (entry?.type !== 'message')
    throw new EverturnError('store', `Entry ${entryId} of session ${sessionId} is not in the store.`);
  return entry.message;
}

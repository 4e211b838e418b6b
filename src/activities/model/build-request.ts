import type { Api, Message, Model, Tool as PiTool, SimpleStreamOptions } from '@earendil-works/pi-ai';
import type { Agent, StreamSettings } from '../../agent/agent.ts';
import type { ContextBase, ModelInput } from '../../common/effects.ts';
import { EverturnError } from '../../common/errors.ts';
import type { AgentMessage } from '../../common/messages.ts';
import type { ContextItem } from '../../session/context-cache.ts';
import type { RequestRecord } from '../../store/types.ts';
import { putJson, readJson } from '../blobs.ts';
import type { Effect } from '../effect.ts';
import { prepareMessages } from '../hooks/context-hooks.ts';
import { prepareOptions } from '../hooks/provider-hooks.ts';
import { callHook } from '../hooks/run-hook.ts';
import type { Runtime } from '../runtime.ts';

/** What one request is made of, without credentials. */
export interface PreparedRequest {
  systemPrompt: string;
  messages: Message[];
  tools: PiTool[];
  options: SimpleStreamOptions;
  /** What the store is to keep of it. Absent: it has it, from an earlier attempt. */
  record?: RequestRecord;
}

/** What is kept beside the messages. Values of headers may be credentials, which never leave this process. */
export interface Frame {
  systemPrompt: string;
  tools: PiTool[];
  model: string;
  options: Omit<SimpleStreamOptions, 'headers'>;
  headerNames: string[];
  /** What a policy had put in place of the transcript. */
  base?: ContextBase;
}

/**
 * Builds the request in the document's order: before_provider_request, transformContext and context, convertToLlm. What
 * the hooks answered is in the store before anything is sent, so a retry makes the same request without asking them again.
 */
export async function buildRequest(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  model: Model<Api>,
  items: ContextItem[],
): Promise<PreparedRequest> {
  const { sessionId } = effect.fence;
  const options = await prepareOptions(effect, agent, model);
  if (effect.attempt > 1) {
    const kept = await runtime.store.readRequest(sessionId, input.runId, input.turn);
    if (kept !== undefined) {
      await effect.kept();
      return restoreRequest(runtime, sessionId, kept, items, options);
    }
  }
  const base = input.base === undefined ? undefined : await readBase(runtime, input.base.digest);
  const context = await contextOf(runtime, items, input);
  const messages = await prepareMessages(runtime, effect, agent, context);
  const frame = await makeFrame(runtime, effect, agent, input, options, base?.systemPrompt);
  const record = await toRecord(runtime, input, messages, items, frame);
  runtime.frames.set(`${sessionId}/${input.runId}/${input.turn}`, frame);
  await effect.kept();
  return { ...frame, options: withHeaders(frame.options, options), messages, record };
}

/** The list of messages and the context base as the store keeps it for policies. */
export async function readBase(
  runtime: Runtime,
  digest: string,
): Promise<{ systemPrompt: string; messages: AgentMessage[] }> {
  return (await readJson(runtime, digest)) as { systemPrompt: string; messages: AgentMessage[] };
}

/** The messages that a request is made from: the transcript, or what a policy put in its place and what came after. */
export async function contextOf(
  runtime: Runtime,
  items: ContextItem[],
  { base }: Pick<ModelInput, 'base'>,
): Promise<AgentMessage[]> {
  if (base === undefined) return items.map((item) => item.message);
  return [...(await readBase(runtime, base.digest)).messages, ...afterBase(items, { base })];
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
  effect: Effect,
  agent: Agent,
  settings: Pick<ModelInput, 'model' | 'thinkingLevel' | 'activeTools'>,
): Promise<string> {
  const { systemPrompt } = agent;
  if (typeof systemPrompt === 'string') return systemPrompt;
  const activeTools = activeToolsOf(agent, settings.activeTools).map((tool) => tool.name);
  const { model, thinkingLevel } = settings;
  return callHook(effect, {
    hook: 'systemPrompt',
    handler: 0,
    soon: true,
    settings: undefined,
    call: () => systemPrompt({ sessionId: effect.fence.sessionId, model, thinkingLevel, activeTools }),
    describe: (text) => ({ characters: text.length }),
  });
}

async function makeFrame(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  options: StreamSettings,
  baseSystemPrompt: string | undefined,
): Promise<Frame> {
  const tools = activeToolsOf(agent, input.activeTools).map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }));
  const reasoning = input.thinkingLevel === 'off' ? {} : { reasoning: input.thinkingLevel };
  const { headers, ...rest } = options;
  return {
    systemPrompt: baseSystemPrompt ?? (await runSystemPrompt(runtime, effect, agent, input)),
    tools,
    model: input.model,
    options: { ...rest, ...reasoning, sessionId: effect.fence.sessionId },
    headerNames: Object.keys(headers ?? {}),
    ...(input.base === undefined ? {} : { base: input.base }),
  };
}

/** What before_agent_start made of it holds for the whole run; else it is the agent's own. */
export async function runSystemPrompt(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  input: Pick<ModelInput, 'model' | 'thinkingLevel' | 'activeTools' | 'systemPrompt'>,
): Promise<string> {
  if (input.systemPrompt !== undefined) return (await readJson(runtime, input.systemPrompt)) as string;
  return systemPromptOf(effect, agent, input);
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
  options: StreamSettings,
): Promise<PreparedRequest> {
  const known = new Map(items.map((item) => [item.entryId, item.message]));
  const messages: Message[] = [];
  for (const ref of kept.messages) {
    if ('blob' in ref) messages.push((await readJson(runtime, ref.blob)) as Message);
    else messages.push((known.get(ref.entry) ?? (await readMessage(runtime, sessionId, ref.entry))) as Message);
  }
  const frame = await frameOf(runtime, kept);
  return { ...frame, options: withHeaders(frame.options, options), messages };
}

/** The system prompt and tools that a reply was asked for with. @throws EverturnError `store` when it had no request */
export async function readFrame(
  runtime: Runtime,
  sessionId: string,
  runId: string,
  turn: number,
): Promise<Pick<Frame, 'systemPrompt' | 'tools' | 'base'>> {
  const recent = runtime.frames.get(`${sessionId}/${runId}/${turn}`);
  if (recent !== undefined) return recent;
  const kept = await runtime.store.readRequest(sessionId, runId, turn);
  if (kept === undefined)
    throw new EverturnError('store', `The request of turn ${turn} of run ${runId} is not in the store.`);
  return frameOf(runtime, kept);
}

async function frameOf(runtime: Runtime, kept: RequestRecord): Promise<Frame> {
  return (await readJson(runtime, kept.frame)) as Frame;
}

function withHeaders(options: Frame['options'], { headers }: StreamSettings): SimpleStreamOptions {
  return headers === undefined ? options : { ...options, headers };
}

async function readMessage(runtime: Runtime, sessionId: string, entryId: string): Promise<AgentMessage> {
  const [entry] = await runtime.store.readEntries(sessionId, [entryId]);
  if (entry?.type !== 'message')
    throw new EverturnError('store', `Entry ${entryId} of session ${sessionId} is not in the store.`);
  return entry.message;
}

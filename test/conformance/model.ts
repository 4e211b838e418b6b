import {
  type Api,
  type AssistantMessage,
  createAssistantMessageEventStream,
  createProvider,
  getCurrentSystemPrompt,
  getCurrentTools,
  type Model,
  type Provider,
  type SimpleStreamOptions,
  type ToolCall,
  type TranscriptContext,
  withoutInitialSystemMessage,
} from '@earendil-works/pi-ai';
import { argumentsOf, replyText, usageOf } from './moves.ts';
import { plain, plainMessage } from './normal.ts';
import type { Play } from './play.ts';
import { callId, models } from './scenario.ts';

type Stream = ReturnType<typeof createAssistantMessageEventStream>;

interface RequestContext {
  systemPrompt?: string;
  messages: readonly object[];
  tools?: readonly { name: string }[];
}

/** The model as pi 0.83.0 calls it. */
export function piStream(play: Play) {
  return (model: Model<Api>, context: RequestContext, options: SimpleStreamOptions = {}): Stream => {
    const stream = createAssistantMessageEventStream();
    void answer(play, model, context, options, stream);
    return stream;
  };
}

/** The same model as a provider of pi-ai 1.6, for Everturn. It answers from the script, and records what it got. */
export function playProvider(playOf: (sessionId: string) => Play): Provider {
  const begin = (model: Model<Api>, { messages }: TranscriptContext, options: SimpleStreamOptions = {}) => {
    const stream = createAssistantMessageEventStream();
    const context = {
      systemPrompt: getCurrentSystemPrompt(messages),
      messages: withoutInitialSystemMessage(messages),
      tools: getCurrentTools(messages),
    };
    void answer(playOf(options.sessionId ?? ''), model, context, options, stream);
    return stream;
  };
  return createProvider({
    id: 'play',
    auth: { apiKey: { name: 'none', resolve: async () => ({ auth: { apiKey: 'none' }, source: 'no key needed' }) } },
    models: models.map((name) => toModel(name.slice('play/'.length))),
    api: { stream: begin, streamSimple: begin },
  });
}

export function toModel(id: string): Model<Api> {
  return {
    id,
    name: id,
    api: 'played',
    provider: 'play',
    baseUrl: 'http://localhost:0',
    reasoning: true,
    input: ['text', 'image'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 1_000_000,
    maxTokens: 16_384,
  };
}

async function answer(
  play: Play,
  model: Model<Api>,
  context: RequestContext,
  options: SimpleStreamOptions,
  stream: Stream,
) {
  const partial = emptyMessage(model);
  const fail = (reason: 'error' | 'aborted', errorMessage: string) => {
    const error: AssistantMessage = { ...structuredClone(partial), stopReason: reason, errorMessage };
    stream.push({ type: 'error', reason, error });
    stream.end(error);
  };
  try {
    options.signal?.throwIfAborted();
    await sendReply(play, model, context, options, stream, partial);
  } catch (error) {
    if (options.signal?.aborted) fail('aborted', 'Request was aborted');
    else fail('error', error instanceof Error ? error.message : String(error));
  }
}

async function sendReply(
  play: Play,
  model: Model<Api>,
  context: RequestContext,
  options: SimpleStreamOptions,
  stream: Stream,
  partial: AssistantMessage,
): Promise<void> {
  const { signal } = options;
  const script = play.beginRequest();
  await seeRequest(play, model, context, options);
  const { run, turn } = play;
  await play.perform('before the first token', script?.beforeStream, signal);
  signal?.throwIfAborted();
  await options.onResponse?.({ status: 200, headers: {} }, model);
  stream.push({ type: 'start', partial });
  let streamed = false;
  const betweenChunks = async () => {
    if (!streamed) await play.perform('stream', script?.inStream, signal);
    streamed = true;
    signal?.throwIfAborted();
  };
  if (script?.thinking) {
    play.mark('thinking');
    await sendText(stream, partial, 'thinking', `thought ${run}.${turn}`, betweenChunks);
  }
  if (script === undefined || script.text)
    await sendText(stream, partial, 'text', replyText(run, turn, script), betweenChunks);
  for (const [index, call] of (script?.calls ?? []).entries()) {
    const id = callId(run, turn, index);
    await sendCall(
      stream,
      partial,
      { type: 'toolCall', id, name: call.tool, arguments: argumentsOf(call, id) },
      betweenChunks,
    );
    play.mark(`${call.args} arguments`);
    play.mark(`call of ${call.tool}`);
  }
  await betweenChunks();
  play.mark(`stop: ${script?.stop ?? 'normal'}`);
  if (script?.stop === 'error') throw new Error('invalid_request: scripted');
  const calls = script?.calls.length ?? 0;
  if (calls > 1) play.mark('batch of several calls');
  const reason = script?.stop === 'length' ? 'length' : calls > 0 ? 'toolUse' : 'stop';
  const message: AssistantMessage = { ...partial, stopReason: reason, usage: usageOf(10 * (turn + 1)) };
  stream.push({ type: 'done', reason, message });
  stream.end(message);
}

async function seeRequest(
  play: Play,
  model: Model<Api>,
  context: RequestContext,
  options: SimpleStreamOptions,
): Promise<void> {
  const { systemPrompt = '' } = context;
  const messages = context.messages.map(plainMessage);
  const tools = (context.tools ?? []).map((tool) => tool.name);
  const payload = { model: model.id, system: systemPrompt, messages, tools };
  const replaced = await options.onPayload?.(structuredClone(payload), model);
  const { headers, metadata, cacheRetention, transport, timeoutMs } = options;
  play.answering({
    model: `${model.provider}/${model.id}`,
    reasoning: options.reasoning ?? 'off',
    systemPrompt,
    messages,
    tools,
    options: plain({ headers, metadata, cacheRetention, transport, timeoutMs }),
    payload: plain(replaced ?? payload),
  });
}

async function sendText(
  stream: Stream,
  partial: AssistantMessage,
  kind: 'text' | 'thinking',
  text: string,
  betweenChunks: () => Promise<void>,
): Promise<void> {
  const block = kind === 'text' ? { type: kind, text: '' } : { type: kind, thinking: '' };
  const contentIndex = partial.content.push(block) - 1;
  stream.push({ type: `${kind}_start`, contentIndex, partial });
  const half = Math.ceil(text.length / 2);
  for (const delta of [text.slice(0, half), text.slice(half)]) {
    if (block.type === 'text') block.text += delta;
    else block.thinking += delta;
    stream.push({ type: `${kind}_delta`, contentIndex, delta, partial });
    await betweenChunks();
  }
  stream.push({ type: `${kind}_end`, contentIndex, content: text, partial });
}

async function sendCall(
  stream: Stream,
  partial: AssistantMessage,
  toolCall: ToolCall,
  betweenChunks: () => Promise<void>,
): Promise<void> {
  const block: ToolCall = { ...toolCall, arguments: {} };
  const contentIndex = partial.content.push(block) - 1;
  stream.push({ type: 'toolcall_start', contentIndex, partial });
  stream.push({ type: 'toolcall_delta', contentIndex, delta: JSON.stringify(toolCall.arguments), partial });
  await betweenChunks();
  block.arguments = toolCall.arguments;
  stream.push({ type: 'toolcall_end', contentIndex, toolCall: block, partial });
}

function emptyMessage(model: Model<Api>): AssistantMessage {
  return {
    role: 'assistant',
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: { ...usageOf(0), output: 0, totalTokens: 0 },
    stopReason: 'pending',
    timestamp: Date.now(),
  };
}

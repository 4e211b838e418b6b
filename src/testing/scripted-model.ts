import {
  type Api,
  createAssistantMessageEventStream,
  createProvider,
  getCurrentSystemPrompt,
  getCurrentTools,
  type Model,
  type Provider,
  type ProviderStreams,
  type SimpleStreamOptions,
  type TranscriptContext,
  withoutInitialSystemMessage,
} from '@earendil-works/pi-ai';
import { EverturnError } from '../common/errors.ts';
import type { Json } from '../common/json.ts';
import { play } from './scripted/play.ts';
import { RequestLog } from './scripted/request-log.ts';
import type { ScriptedReplies, ScriptedReply, ScriptedRequest } from './scripted/types.ts';

export { readRequests } from './scripted/request-log.ts';
export type { ScriptedCall, ScriptedReplies, ScriptedReply, ScriptedRequest, ScriptedUsage } from './scripted/types.ts';

export interface ScriptedModelOptions {
  /** "provider/model-id". Default: 'scripted/main'. */
  id?: string;
  /** Further model ids of the provider, which answer from the same script. Default: none. */
  models?: readonly string[];
  /**
   * Which reply a request gets depends on the request alone: on the number of its assistant messages, or on what a
   * function makes of it. So a request that is made anew, by whatever process, gets the same reply. A request for which
   * there is no reply ends in a permanent error.
   */
  replies: ScriptedReplies;
  /** File to which every request is added as one line of JSON. Default: none. */
  requestLog?: string;
  /** Tokens. Default: 128,000. */
  contextWindow?: number;
  /** Tokens. Default: 16,384. */
  maxTokens?: number;
}

/** A provider for `createWorker({ providers })` or pi-ai's `createModels()`. */
export interface ScriptedModel extends Provider {
  /** What to give to an agent as its model: "provider/model-id". */
  readonly ref: string;
  /** The requests that this process made, oldest first. */
  readonly requests: readonly ScriptedRequest[];
}

const api = 'scripted';

/**
 * A model that plays a script: it stands in for an LLM in tests, without network and without a key, and streams like a
 * real provider. It honours the abort signal at every point; the aborted message keeps the content that had come.
 */
export function scriptedModel(options: ScriptedModelOptions): ScriptedModel {
  const ref = options.id ?? 'scripted/main';
  const slash = ref.indexOf('/');
  if (slash < 1 || slash === ref.length - 1) {
    throw new EverturnError('invalid_config', `scriptedModel: id "${ref}" must be "provider/model-id"`);
  }
  const provider = ref.slice(0, slash);
  const requests: ScriptedRequest[] = [];
  const streams = streamsOf(options, requests);
  const created = createProvider({
    id: provider,
    auth: { apiKey: { name: 'none', resolve: async () => ({ auth: { apiKey: 'none' }, source: 'no key needed' }) } },
    models: [ref.slice(slash + 1), ...(options.models ?? [])].map((id) => toModel(provider, id, options)),
    api: streams,
  });
  return Object.assign(created, { ref, requests });
}

function toModel(provider: string, id: string, options: ScriptedModelOptions): Model<Api> {
  return {
    id,
    name: id,
    api,
    provider,
    baseUrl: 'http://localhost:0',
    reasoning: true,
    input: ['text', 'image'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: options.contextWindow ?? 128_000,
    maxTokens: options.maxTokens ?? 16_384,
  };
}

function streamsOf(options: ScriptedModelOptions, requests: ScriptedRequest[]): ProviderStreams {
  const log = new RequestLog(options.requestLog);
  const begin = (model: Model<Api>, context: TranscriptContext, streamOptions: SimpleStreamOptions = {}) => {
    const stream = createAssistantMessageEventStream();
    const answer = async () => {
      streamOptions.signal?.throwIfAborted();
      const request = describe(model, context, streamOptions);
      await applyPayloadHook(request, model, streamOptions);
      log.add(request);
      requests.push(request);
      return { request, reply: await chooseReply(options.replies, request) };
    };
    // What is thrown before the reply begins ends the stream as a provider's own failure would.
    answer().then(
      ({ request, reply }) => play({ reply, request, model, options: streamOptions, stream }),
      (error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        const request = describe(model, context, streamOptions);
        return play({ reply: { error: text }, request, model, options: streamOptions, stream });
      },
    );
    return stream;
  };
  return { stream: begin, streamSimple: begin };
}

async function chooseReply(replies: ScriptedReplies, request: ScriptedRequest): Promise<ScriptedReply> {
  if (typeof replies === 'function') return replies(request);
  const reply = replies[request.reply];
  if (reply !== undefined) return reply;
  throw new Error(
    `invalid_request: the script has ${replies.length} replies, and a request with ${request.reply} assistant messages came`,
  );
}

/** Real providers hand their payload to `onPayload` before they send it; this one takes a summary for its payload. */
async function applyPayloadHook(
  request: ScriptedRequest,
  model: Model<Api>,
  options: SimpleStreamOptions,
): Promise<void> {
  const { systemPrompt, messages, tools } = request;
  const replaced = await options.onPayload?.({ model: model.id, system: systemPrompt, messages, tools }, model);
  if (replaced !== undefined) request.payload = replaced as Json;
}

function describe(model: Model<Api>, context: TranscriptContext, options: SimpleStreamOptions): ScriptedRequest {
  const messages = structuredClone(withoutInitialSystemMessage(context.messages));
  const { sessionId, reasoning, temperature, maxTokens, cacheRetention, headers, metadata } = options;
  const sent = { sessionId, reasoning, temperature, maxTokens, cacheRetention, headers, metadata };
  return {
    model: `${model.provider}/${model.id}`,
    reply: messages.filter((message) => message.role === 'assistant').length,
    attempt: 1,
    systemPrompt: getCurrentSystemPrompt(context.messages),
    messages,
    tools: getCurrentTools(context.messages).map((tool) => tool.name),
    options: JSON.parse(JSON.stringify(sent)) as ScriptedRequest['options'],
    pid: process.pid,
    at: Date.now(),
  };
}

import {
  type Api,
  type AssistantMessageEvent,
  createModels,
  createProvider,
  type Message,
  type Model,
  type MutableModels,
  type ProviderStreams,
} from '@earendil-works/pi-ai';
import { anthropicMessagesApi } from '@earendil-works/pi-ai/api/anthropic-messages.lazy';
import { openAICompletionsApi } from '@earendil-works/pi-ai/api/openai-completions.lazy';
import { openAIResponsesApi } from '@earendil-works/pi-ai/api/openai-responses.lazy';
import { afterEach } from '@jest/globals';
import type { ModelOutcome } from '../../src/activities/model/outcome.ts';
import { type ModelRequest, streamModel } from '../../src/activities/model/stream-model.ts';
import {
  type ProviderServer,
  type ProviderServerOptions,
  startProviderServer,
  type Wire,
} from '../../src/testing/provider-server.ts';

export const wires: Wire[] = ['anthropic', 'openai-completions', 'openai-responses'];

const apis: Record<Wire, { api: Api; streams: () => ProviderStreams }> = {
  anthropic: { api: 'anthropic-messages', streams: anthropicMessagesApi },
  'openai-completions': { api: 'openai-completions', streams: openAICompletionsApi },
  'openai-responses': { api: 'openai-responses', streams: openAIResponsesApi },
};

const open: ProviderServer[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

/** A provider server that the end of the test closes. */
export async function serve(reply: ProviderServerOptions['reply']): Promise<ProviderServer> {
  const server = await startProviderServer({ reply });
  open.push(server);
  return server;
}

/** A collection with one provider, `test`, and one model, `test/model-1`, behind a base URL. */
export function collection(
  wire: Wire,
  baseUrl: string,
  overrides: Partial<Model<Api>> = {},
): { models: MutableModels; model: Model<Api> } {
  const { api, streams } = apis[wire];
  const model: Model<Api> = {
    id: 'model-1',
    name: 'Model 1',
    api,
    provider: 'test',
    baseUrl,
    reasoning: true,
    input: ['text', 'image'],
    cost: { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 2 },
    contextWindow: 200_000,
    maxTokens: 8192,
    ...overrides,
  };
  const models = createModels();
  models.setProvider(
    createProvider({
      id: 'test',
      auth: { apiKey: { name: 'key', resolve: async () => ({ auth: { apiKey: 'sk-test' } }) } },
      models: [model],
      api: streams(),
    }),
  );
  return { models, model };
}

export function user(content: Extract<Message, { role: 'user' }>['content']): Message {
  return { role: 'user', content, timestamp: 1 };
}

export interface Asked {
  outcome: Promise<ModelOutcome>;
  events: AssistantMessageEvent[];
  controller: AbortController;
  /** Resolves when an event of this type was seen. */
  saw(type: AssistantMessageEvent['type']): Promise<void>;
}

/** Sends one request; a generous stall timeout unless the test gives one. */
export function ask(
  target: { models: MutableModels; model: Model<Api> },
  overrides: Partial<ModelRequest> = {},
): Asked {
  const controller = new AbortController();
  const events: AssistantMessageEvent[] = [];
  const waiting: { type: string; resolve(): void }[] = [];
  const outcome = streamModel({
    ...target,
    context: { systemPrompt: 'Be brief.', messages: [user('Hello')] },
    options: {},
    signal: controller.signal,
    stallTimeoutMs: 20_000,
    ...overrides,
    onEvent(event) {
      events.push(event);
      for (const waiter of waiting.filter(({ type }) => type === event.type)) waiter.resolve();
      overrides.onEvent?.(event);
    },
  });
  return {
    outcome,
    events,
    controller,
    saw(type) {
      if (events.some((event) => event.type === type)) return Promise.resolve();
      return new Promise((resolve) => waiting.push({ type, resolve }));
    },
  };
}

/** A request against a server of its own that answers by the script. */
export async function askServer(
  wire: Wire,
  reply: ProviderServerOptions['reply'],
  overrides: Partial<ModelRequest> = {},
): Promise<Asked & { server: ProviderServer }> {
  const server = await serve(reply);
  return { server, ...ask(collection(wire, server.baseUrl(wire)), overrides) };
}

/** The text of a message's text blocks. */
export function textOf(outcome: ModelOutcome): string {
  return outcome.message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

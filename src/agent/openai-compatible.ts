import { type ApiKeyAuth, createProvider, type Model, type Provider } from '@earendil-works/pi-ai';
import { openAICompletionsApi } from '@earendil-works/pi-ai/api/openai-completions.lazy';
import { EverturnError } from '../common/errors.ts';

export interface OpenAICompatibleModel {
  /** The name that the server knows. */
  id: string;
  /** Tokens of prompt and answer together; compaction starts from it. Default: 128,000. */
  contextWindow?: number;
  /** The most tokens of one answer. Default: 16,384, or the window if that is smaller. */
  maxTokens?: number;
  /** Whether the server takes `reasoning_effort`. Default: false. */
  reasoning?: boolean;
  /** What a user message may hold. Default: text only; images then become a placeholder. */
  input?: ('text' | 'image')[];
}

export interface OpenAICompatibleOptions {
  /** The provider's id, the part before the slash in a model reference. Default: 'openai-compatible'. */
  id?: string;
  /** Where `/chat/completions` hangs, such as 'http://127.0.0.1:11434/v1'. */
  baseUrl: string;
  /** Sent as a bearer token. Default: a placeholder, which servers without keys ignore. */
  apiKey?: string;
  models: OpenAICompatibleModel[];
}

/** Some HTTP clients refuse an empty key, and servers without keys do not read it. */
const NO_KEY = 'none';

/**
 * A provider for any server that speaks OpenAI's chat completions: llama.cpp, vLLM, Ollama, LM Studio, gateways.
 * Costs count as zero. Throws `invalid_config` for a URL that is not http(s) or a list without models.
 */
export function openAICompatible(options: OpenAICompatibleOptions): Provider<'openai-completions'> {
  const { id = 'openai-compatible', apiKey = NO_KEY } = options;
  const baseUrl = options.baseUrl.replace(/\/+$/, '');
  if (!/^https?:$/.test(URL.parse(baseUrl)?.protocol ?? '')) {
    throw new EverturnError('invalid_config', `openAICompatible: baseUrl "${options.baseUrl}" is not an http(s) URL`);
  }
  if (id === '' || id.includes('/')) {
    throw new EverturnError('invalid_config', `openAICompatible: id "${id}" must be a name without a slash`);
  }
  if (options.models.length === 0) {
    throw new EverturnError('invalid_config', 'openAICompatible: name at least one model');
  }
  return createProvider({
    id,
    baseUrl,
    auth: { apiKey: fixedKey(apiKey) },
    models: options.models.map((model) => toModel(id, baseUrl, model)),
    api: openAICompletionsApi(),
  });
}

/** A key from the credential store or the request wins over the configured one. */
function fixedKey(apiKey: string): ApiKeyAuth {
  return {
    name: 'API key',
    resolve: async ({ credential }) => ({ auth: { apiKey: credential?.key ?? apiKey }, source: 'configuration' }),
  };
}

function toModel(provider: string, baseUrl: string, model: OpenAICompatibleModel): Model<'openai-completions'> {
  const contextWindow = model.contextWindow ?? 128_000;
  return {
    id: model.id,
    name: model.id,
    api: 'openai-completions',
    provider,
    baseUrl,
    reasoning: model.reasoning ?? false,
    input: model.input ?? ['text'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow,
    maxTokens: model.maxTokens ?? Math.min(16_384, contextWindow),
    // `store` and the newer token field are OpenAI's own; `max_tokens` is what every compatible server reads.
    compat: { supportsStore: false, maxTokensField: 'max_tokens' },
  };
}

import { type AuthContext, createModels, createProvider } from '@earendil-works/pi-ai';
import { anthropicProvider } from '@earendil-works/pi-ai/providers/anthropic';
import { openaiProvider } from '@earendil-works/pi-ai/providers/openai';
import { describe, expect, test } from '@jest/globals';
import { checkModelAuth, resolveModel } from '../../src/activities/model/resolve-model.ts';
import { openAICompatible } from '../../src/agent/openai-compatible.ts';
import { ask, collection, serve, textOf } from './harness.ts';

/** An environment with these variables and nothing else, whatever the machine has. */
function environment(variables: Record<string, string> = {}): AuthContext {
  return { env: async (name) => variables[name], fileExists: async () => false };
}

function builtins(variables: Record<string, string> = {}) {
  const models = createModels({ authContext: environment(variables) });
  models.setProvider(anthropicProvider());
  models.setProvider(openaiProvider());
  models.setProvider(
    openAICompatible({
      id: 'local',
      baseUrl: 'http://127.0.0.1:11434/v1',
      models: [{ id: 'qwen/qwen3-8b' }, { id: 'gemma' }],
    }),
  );
  return models;
}

describe('resolveModel', () => {
  const models = builtins();
  const [known] = models.getModels('anthropic');

  test('finds a model by text or by parts', () => {
    expect(resolveModel(models, `anthropic/${known!.id}`)).toBe(known);
    expect(resolveModel(models, { provider: 'anthropic', id: known!.id })).toBe(known);
  });

  test('an id may contain slashes', () => {
    expect(resolveModel(models, 'local/qwen/qwen3-8b')).toMatchObject({ provider: 'local', id: 'qwen/qwen3-8b' });
  });

  test('a misspelt id is unknown, and near ones are named', () => {
    const wanted = `anthropic/${known!.id}x`;
    expect(() => resolveModel(models, wanted)).toThrow(
      expect.objectContaining({ code: 'unknown_model', message: expect.stringContaining(`anthropic/${known!.id}`) }),
    );
  });

  test('an id like nothing else is unknown, and the provider’s models are named', () => {
    expect(() => resolveModel(models, 'local/zzzzzzzzz')).toThrow(/has no model "zzzzzzzzz".*qwen\/qwen3-8b, gemma/);
  });

  test('an unknown provider is told with the known ones', () => {
    expect(() => resolveModel(models, 'antropic/anything-at-all')).toThrow(
      expect.objectContaining({
        code: 'unknown_model',
        message: expect.stringContaining('known are anthropic, openai, local'),
        details: expect.objectContaining({ providers: ['anthropic', 'openai', 'local'] }),
      }),
    );
    expect(() => resolveModel(createModels(), 'a/b')).toThrow(/none is registered/);
  });

  test('a name without a provider is never guessed, only suggested', () => {
    expect(() => resolveModel(models, 'gemma')).toThrow(/written provider\/id.*Did you mean local\/gemma/);
  });
});

describe('credentials', () => {
  test('a missing key names the variables to set, the ordinary one first', async () => {
    const models = builtins();
    const openai = models.getModels('openai')[0]!;
    await expect(checkModelAuth(models, openai)).rejects.toMatchObject({
      code: 'no_api_key',
      message: 'No API key for provider "openai". Set OPENAI_API_KEY, or store a credential for it.',
      details: { provider: 'openai', variables: ['OPENAI_API_KEY'] },
    });
    await expect(checkModelAuth(models, models.getModels('anthropic')[0]!)).rejects.toThrow(
      /Set ANTHROPIC_API_KEY or /,
    );
  });

  test('a key in the environment is enough', async () => {
    const models = builtins({ OPENAI_API_KEY: 'sk-x' });
    await expect(checkModelAuth(models, models.getModels('openai')[0]!)).resolves.toBeUndefined();
  });

  test('a model of a provider that is not there is unknown', async () => {
    const { model } = collection('anthropic', 'http://127.0.0.1:9');
    await expect(checkModelAuth(createModels(), model)).rejects.toMatchObject({ code: 'unknown_model' });
    const { outcome } = ask({ models: createModels(), model });
    expect(await outcome).toMatchObject({ kind: 'permanent', code: 'unknown_model' });
  });

  test('a request without a key is permanent, makes no request and says which variable to set', async () => {
    const models = builtins();
    const { outcome, events } = ask({ models, model: models.getModels('anthropic')[0]! });
    const result = await outcome;
    expect(result).toMatchObject({ kind: 'permanent', code: 'no_api_key', message: { stopReason: 'error' } });
    expect(result.message.errorMessage).toContain('ANTHROPIC_API_KEY');
    expect(events.map((event) => event.type)).toEqual(['error']);
  });

  test('a provider whose auth gives nothing to an adapter that needs a key is permanent', async () => {
    const { model } = collection('openai-responses', 'http://127.0.0.1:9');
    const models = createModels();
    const { openAIResponsesApi } = await import('@earendil-works/pi-ai/api/openai-responses.lazy');
    models.setProvider(
      createProvider({
        id: 'test',
        auth: { apiKey: { name: 'none', resolve: async () => ({ auth: {} }) } },
        models: [model],
        api: openAIResponsesApi(),
      }),
    );
    expect(await ask({ models, model }).outcome).toMatchObject({ kind: 'permanent', code: 'no_api_key' });
  });

  test('a credential store out of reach is transient, and retryable when checked', async () => {
    const { model } = collection('anthropic', 'http://127.0.0.1:9');
    const down = async () => {
      throw new Error('store is down');
    };
    const models = createModels({ credentials: { read: down, list: down, modify: down, delete: down } });
    models.setProvider(anthropicProvider());
    const own = { ...model, provider: 'anthropic' };
    expect(await ask({ models, model: own }).outcome).toMatchObject({ kind: 'transient', reason: 'credentials' });
    await expect(checkModelAuth(models, own)).rejects.toMatchObject({ code: 'model_failed', retryable: true });
  });
});

describe('openAICompatible', () => {
  test('a server without keys answers', async () => {
    const server = await serve(() => ({
      content: [{ type: 'text', chunks: ['Local ', 'hello'] }],
      usage: { input: 9, output: 2 },
    }));
    const models = createModels({ authContext: environment() });
    models.setProvider(
      openAICompatible({ baseUrl: `${server.baseUrl('openai-completions')}/`, models: [{ id: 'tiny' }] }),
    );
    const model = resolveModel(models, 'openai-compatible/tiny');
    await expect(checkModelAuth(models, model)).resolves.toBeUndefined();
    const result = await ask({ models, model }).outcome;
    expect(textOf(result)).toBe('Local hello');
    expect(result.message.usage).toMatchObject({ input: 9, output: 2, cost: { total: 0 } });
    expect(server.requests[0]).toMatchObject({
      path: '/v1/chat/completions',
      body: { model: 'tiny', max_tokens: 16_384 },
    });
  });

  test('a configured key is sent, and the settings of a model are kept', async () => {
    const server = await serve(() => ({}));
    const models = createModels();
    models.setProvider(
      openAICompatible({
        id: 'vllm',
        baseUrl: server.baseUrl('openai-completions'),
        apiKey: 'secret-1',
        models: [{ id: 'big', contextWindow: 32_000, maxTokens: 2000, reasoning: true, input: ['text', 'image'] }],
      }),
    );
    const model = resolveModel(models, 'vllm/big');
    expect(model).toMatchObject({ contextWindow: 32_000, maxTokens: 2000, reasoning: true, input: ['text', 'image'] });
    await ask({ models, model }, { options: { reasoning: 'low' } }).outcome;
    expect(server.requests[0]).toMatchObject({
      headers: { authorization: 'Bearer secret-1' },
      body: { max_tokens: 2000, reasoning_effort: 'low' },
    });
  });

  test('bad settings are refused at once', () => {
    const models = [{ id: 'x' }];
    const refusal = expect.objectContaining({ code: 'invalid_config' });
    expect(() => openAICompatible({ baseUrl: 'localhost:8080', models })).toThrow(refusal);
    expect(() => openAICompatible({ baseUrl: 'http://127.0.0.1:1/v1', models: [] })).toThrow(refusal);
    expect(() => openAICompatible({ id: 'a/b', baseUrl: 'http://127.0.0.1:1/v1', models })).toThrow(refusal);
  });
});

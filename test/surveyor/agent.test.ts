import { createServer } from 'node:http';
import { builtinModels } from '@earendil-works/pi-ai/providers/all';
import { afterAll, describe, expect, test } from '@jest/globals';
import { createSurveyor } from '../../examples/surveyor/agent.ts';
import { anthropicModelRef, chooseModel, openAIModelRef } from '../../examples/surveyor/model.ts';
import { makeFolder, removeFolders } from './folders.ts';

afterAll(removeFolders);

const withServer = async <T>(body: string, use: (url: string) => Promise<T>): Promise<T> => {
  const server = createServer((_, response) => response.setHeader('content-type', 'application/json').end(body));
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const address = server.address();
  try {
    return await use(`http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/v1`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
};

describe('the choice of a model', () => {
  test('without any key it is the offline model, and the note says so', async () => {
    const choice = await chooseModel({});
    expect(choice.ref).toBe('offline/surveyor');
    expect(choice.note).toMatch(/no API key is set, so an offline model decides from the real tool results/);
  });

  test('a key decides for its provider, and SURVEYOR_MODEL over it', async () => {
    expect((await chooseModel({ ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' })).ref).toBe(anthropicModelRef);
    expect((await chooseModel({ OPENAI_API_KEY: 'k' })).ref).toBe(openAIModelRef);
    expect((await chooseModel({ OPENAI_API_KEY: 'k', SURVEYOR_MODEL: 'openai/gpt-4.1' })).ref).toBe('openai/gpt-4.1');
    expect((await chooseModel({ ANTHROPIC_API_KEY: '' })).ref).toBe('offline/surveyor');
  });

  test('no note has a key in it', async () => {
    for (const name of ['ANTHROPIC_API_KEY', 'OPENAI_API_KEY']) {
      expect((await chooseModel({ [name]: 'sk-secret' })).note).not.toContain('sk-secret');
    }
  });

  test('the models that keys decide for are in the catalog', () => {
    for (const ref of [anthropicModelRef, openAIModelRef]) {
      const [provider = '', id = ''] = ref.split('/');
      expect(builtinModels().getModel(provider, id)?.id).toBe(id);
    }
  });

  test('a compatible server is used with the model that is named, or the first that it lists', async () => {
    const named = await chooseModel({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_MODEL: 'qwen' });
    expect(named.ref).toBe('openai-compatible/qwen');
    expect(named.providers.map((provider) => provider.id)).toEqual(['offline', 'openai-compatible']);
    await withServer('{"data":[{"id":"llama-9"}]}', async (url) => {
      expect((await chooseModel({ OPENAI_BASE_URL: url })).ref).toBe('openai-compatible/llama-9');
    });
  });

  test('a compatible server that names no model is an error that says what to set', async () => {
    await withServer('{}', async (url) => {
      await expect(chooseModel({ OPENAI_BASE_URL: url })).rejects.toThrow(/HTTP 200 without a list.*Set OPENAI_MODEL/);
    });
    await expect(chooseModel({ OPENAI_BASE_URL: 'http://127.0.0.1:1/v1' })).rejects.toThrow(/Set OPENAI_MODEL/);
  });
});

describe('the surveyor', () => {
  test('repeats what is harmless after a crash, and a command never', async () => {
    const { agent } = await createSurveyor({ SURVEYOR_WORKSPACE: makeFolder(), SURVEYOR_OUTPUT: makeFolder() });
    const kinds = Object.fromEntries(agent.tools.map((tool) => [tool.name, tool.replay]));
    expect(kinds).toEqual({ list: 'safe', read: 'safe', search: 'safe', write: 'safe', bash: 'never' });
  });

  test('makes its report folder, and refuses a workspace that is not there', async () => {
    const root = makeFolder();
    const { output } = await createSurveyor({ SURVEYOR_WORKSPACE: root, SURVEYOR_OUTPUT: `${root}/new/report` });
    expect(output).toBe(`${root}/new/report`);
    await expect(createSurveyor({ SURVEYOR_WORKSPACE: `${root}/none`, SURVEYOR_OUTPUT: root })).rejects.toThrow(
      /none" is not a folder/,
    );
  });
});

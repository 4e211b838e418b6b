import { createProvider } from '@earendil-works/pi-ai';
import { expect, test } from '@jest/globals';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { loopTools } from '../support/loop-tools.ts';

const keyless = createProvider({
  id: 'keyless',
  auth: {
    apiKey: {
      name: 'API key',
      async resolve({ ctx }) {
        const key = await ctx.env('KEYLESS_API_KEY');
        return key === undefined ? undefined : { auth: { apiKey: key }, source: 'KEYLESS_API_KEY' };
      },
    },
  },
  models: [
    {
      ...{
        id: 'm',
        name: 'm',
        api: 'openai-completions' as const,
        provider: 'keyless',
        baseUrl: 'http://127.0.0.1:1',
        reasoning: false,
      },
      ...{
        input: ['text' as const],
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
        contextWindow: 1000,
        maxTokens: 100,
      },
    },
  ],
  api: {
    stream: () => {
      throw new Error('never asked');
    },
    streamSimple: () => {
      throw new Error('never asked');
    },
  },
});

const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness), lingerMs: 1 }),
    testAgent('other', { lingerMs: 1 }),
    testAgent('lingering', {}),
    testAgent('no-key', { model: 'keyless/m' }),
    testAgent('no-model', { model: 'scripted/nobody' }),
  ],
  worker: { providers: [keyless] },
});

/** The workflow ends, and no run is left behind. */
async function nothingLeft(talk: Talk): Promise<void> {
  await talk.closed();
  expect(await harness.store.listRuns(talk.sessionId)).toEqual([]);
}

test('an unknown agent is unknown_agent, and names those that there are', async () => {
  const talk = harness.talk('nobody');
  await expect(talk.session.prompt('Hi')).rejects.toMatchObject({
    code: 'unknown_agent',
    message: expect.stringMatching(/"nobody".*plain, other.*createWorker/),
  });
  await nothingLeft(talk);
});

test('an unknown model is unknown_model, with near matches', async () => {
  const talk = harness.talk('plain', [], { model: 'scripted/mian' });
  await expect(talk.session.prompt('Hi')).rejects.toMatchObject({
    code: 'unknown_model',
    message: expect.stringContaining('Did you mean scripted/main?'),
  });
  await nothingLeft(talk);
  await expect(harness.talk('no-model').session.prompt('Hi')).rejects.toMatchObject({ code: 'unknown_model' });
});

test('a provider without a key is no_api_key, and names the variable to set', async () => {
  const talk = harness.talk('no-key');
  await expect(talk.session.prompt('Hi')).rejects.toMatchObject({
    code: 'no_api_key',
    message: expect.stringContaining('Set KEYLESS_API_KEY'),
    details: { provider: 'keyless' },
  });
  await nothingLeft(talk);
});

test('an unknown tool among the active ones is unknown_tool', async () => {
  const talk = harness.talk('plain', [], { activeTools: ['say', 'sya'] });
  await expect(talk.session.prompt('Hi')).rejects.toMatchObject({
    code: 'unknown_tool',
    message: expect.stringContaining('"sya"'),
  });
  await nothingLeft(talk);
});

test('a session that could not be opened may be opened once what was wrong is right', async () => {
  const talk = harness.talk('nobody', [{ text: 'Hello' }]);
  await expect(talk.session.prompt('Hi', { runId: 'r1' })).rejects.toMatchObject({ code: 'unknown_agent' });
  await talk.closed();
  expect(await talk.as({ agent: 'plain' }).run('Hi', { runId: 'r1' })).toMatchObject({ text: 'Hello' });
});

test('several prompts to a session that cannot be opened are all told', async () => {
  const talk = harness.talk('nobody');
  const answers = await Promise.allSettled([1, 2, 3].map(() => talk.session.prompt('Hi', { onBusy: 'followUp' })));
  for (const answer of answers) expect(answer).toMatchObject({ status: 'rejected', reason: { code: 'unknown_agent' } });
});

test.each(['plain', 'lingering'])(
  'a session of another agent is invalid_argument, also while its workflow is up (%s)',
  async (agent) => {
    const talk = harness.talk(agent, [{ text: 'A' }, { text: 'B' }]);
    await talk.session.run('Hi');
    if (agent === 'plain') await talk.closed();
    await expect(talk.as({ agent: 'other' }).prompt('Hi')).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(new RegExp(`belongs to agent "${agent}", not "other"`)),
    });
    expect(await talk.session.run('Again')).toMatchObject({ text: 'B' });
  },
);

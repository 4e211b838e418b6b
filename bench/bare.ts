import { type AgentTool, runAgentLoop, type StreamFn } from '@earendil-works/pi-agent-core';
import { kilobyte } from './model.ts';

const usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

const echo = {
  name: 'echo',
  label: 'echo',
  description: 'Gives a kilobyte back.',
  parameters: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  execute: async () => ({ content: [{ type: 'text', text: kilobyte }], details: {} }),
} as unknown as AgentTool;

/** A reply at once: the same messages as the scripted model's. */
function replyTo(turns: number): StreamFn {
  const stream = (model: { id: string; api: string; provider: string }, context: { messages: { role: string }[] }) => {
    const done = context.messages.filter((message) => message.role === 'assistant').length;
    const last = done >= turns - 1;
    const call = { type: 'toolCall', id: `call-${done}`, name: 'echo', arguments: { n: done } };
    const message = {
      role: 'assistant',
      content: last ? [{ type: 'text', text: 'done' }] : [{ type: 'text', text: kilobyte }, call],
      api: model.api,
      provider: model.provider,
      model: model.id,
      usage,
      stopReason: last ? 'stop' : 'toolUse',
      timestamp: Date.now(),
    };
    return {
      async *[Symbol.asyncIterator]() {
        yield { type: 'start', partial: message };
        yield { type: 'done', reason: message.stopReason, message };
      },
      result: async () => message,
    };
  };
  return stream as unknown as StreamFn;
}

/** Turns a second of pi's loop in this process, with nothing durable: what durability costs is measured against it. */
export async function runBare({ sessions, turns }: { sessions: number; turns: number }): Promise<number> {
  const model = {
    id: 'main',
    name: 'main',
    api: 'bare',
    provider: 'bare',
    baseUrl: '',
    reasoning: false,
    input: ['text'],
    cost: usage.cost,
    contextWindow: 1_000_000,
    maxTokens: 1_000,
  };
  const one = () =>
    runAgentLoop(
      [{ role: 'user', content: kilobyte, timestamp: Date.now() }],
      { systemPrompt: '', messages: [], tools: [echo] },
      { model, convertToLlm: (messages: unknown) => messages } as unknown as Parameters<typeof runAgentLoop>[2],
      async () => {},
      undefined,
      replyTo(turns),
    );
  const started = performance.now();
  await Promise.all(Array.from({ length: sessions }, one));
  return (sessions * turns) / ((performance.now() - started) / 1_000);
}

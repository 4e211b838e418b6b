import { once } from 'node:events';
import { DefaultLogger, makeTelemetryFilterString, Runtime } from '@temporalio/worker';
import { type Agent, defineAgent, defineTool, openAICompatible } from 'everturn';
import { createWorker } from 'everturn/worker';
import { z } from 'zod';
import { echoAgent } from './agents.ts';
import type { Queue } from './lib.ts';
import { instantModel, instantReply, type ModelReply, type ModelRequest, modelRef } from './model.ts';
import { endWithParent, note, ownConfig, tell } from './processes.ts';
import { pacedReply } from './stream/paced.ts';

// A worker process of the benchmarks: started by `startProcess`, ended by a signal.

export interface WorkerConfig extends Queue {
  workflowBundle: { codePath: string };
  /** Where it is in the model, in a tool or in a gate, it stays until its signal fires. */
  holds?: boolean;
  /** Base URL of a provider for the agent `remote`. */
  provider?: string;
  /** Milliseconds that the model of the agent `bench` takes. */
  modelMs?: number;
}

const config = ownConfig<WorkerConfig>();

async function hold(signal: AbortSignal | undefined): Promise<void> {
  if (config.holds && signal !== undefined && !signal.aborted) await once(signal, 'abort');
  signal?.throwIfAborted();
}

/** The prompt's first word says what its session is for. */
function reply(request: ModelRequest): ModelReply {
  const prompt = JSON.stringify(request.messages.findLast((message) => message.role === 'user')?.content ?? '');
  note('model', request.sessionId);
  if (prompt.includes('paced')) return pacedReply(prompt);
  if (prompt.includes('stream')) return { text: streamAndHold(request.signal) };
  if (prompt.includes('call')) {
    const answered = request.messages.at(-1)?.role === 'toolResult';
    return answered ? { text: ['done'] } : { text: ['wait'], call: { name: 'wait', args: { n: 0 } } };
  }
  const answer = instantReply(request);
  return config.modelMs === undefined ? answer : { ...answer, text: afterMs(config.modelMs, answer.text) };
}

async function* streamAndHold(signal: AbortSignal | undefined): AsyncGenerator<string> {
  yield 'one ';
  await hold(signal);
  yield 'two';
}

async function* afterMs(ms: number, text: ModelReply['text']): AsyncGenerator<string> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  yield* text;
}

const wait = defineTool({
  name: 'wait',
  description: 'Waits.',
  parameters: z.object({ n: z.number() }),
  replay: 'safe',
  execute: async (_args, { sessionId, signal }) => {
    note('tool', sessionId);
    await hold(signal);
    return 'waited';
  },
});

function agents(): Agent[] {
  const gated = defineAgent({
    name: 'gated',
    model: modelRef,
    // Hooks learn from it which session they are called for.
    systemPrompt: ({ sessionId }) => sessionId,
    tools: [wait],
    beforeToolCall: async ({ context }, signal) => {
      note('gate', context.systemPrompt);
      await hold(signal);
      return undefined;
    },
  });
  const remote = defineAgent({ name: 'remote', model: 'remote/main' });
  return [echoAgent('bench'), defineAgent({ name: 'waiting', model: modelRef, tools: [wait] }), gated, remote];
}

endWithParent();
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
  shutdownSignals: [],
});
const baseUrl = config.provider ?? 'http://127.0.0.1:9/v1';
const { address, store, taskQueue, workflowBundle } = config;
const worker = await createWorker({
  address,
  store,
  taskQueue,
  workflowBundle,
  agents: agents(),
  providers: [instantModel(reply), openAICompatible({ id: 'remote', baseUrl, models: [{ id: 'main' }] })],
});
process.on('SIGTERM', () => worker.shutdown());
const running = worker.run();
tell({ ready: true });
await running;
process.exit(0);

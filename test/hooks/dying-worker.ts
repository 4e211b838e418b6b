import { z } from 'zod';
import { defineAgent } from '../../src/agent/agent.ts';
import { defineTool } from '../../src/agent/tool.ts';
import type { AgentMessage } from '../../src/common/messages.ts';
import { currentSession } from '../../src/hooks/current-signal.ts';
import type { AgentHarnessHandler } from '../../src/hooks/harness-types.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { createWorker } from '../../src/worker/index.ts';
import { Evidence } from '../support/evidence.ts';

// A worker process whose hooks leave a line each, and hold where a file of the session's folder says so. It is killed.

interface DyingWorkerConfig {
  address: string;
  taskQueue: string;
  store: string;
  bundle: string;
  folder: string;
}

/** Log of a session's hooks, one line for each call. */
const hooksLog = 'hooks.log';
/** While this file is there the hook holds; `<file>.held` says that it does. */
const holdFile = (hook: string) => `hold-${hook}`;

const config = JSON.parse(process.env.EVERTURN_TEST_WORKER ?? '') as DyingWorkerConfig;
const root = new Evidence(config.folder);

async function pass(hook: string): Promise<undefined> {
  const evidence = root.of(currentSession()?.sessionId ?? 'none');
  evidence.note(hooksLog, { hook });
  const file = holdFile(hook);
  if (!evidence.has(file)) return;
  evidence.put(`${file}.held`);
  await evidence.untilGone(file);
}

const through =
  <T>(hook: string) =>
  async (messages: T): Promise<T> => {
    await pass(hook);
    return messages;
  };
const listOf = (hook: string) => async (): Promise<AgentMessage[]> => {
  await pass(hook);
  return [];
};

const agent = defineAgent({
  name: 'dying',
  model: 'scripted/main',
  tools: [
    defineTool({
      name: 'once',
      description: 'Never run again',
      parameters: z.object({}),
      heartbeatTimeoutMs: 3_000,
      execute: (_args, { sessionId }) => {
        root.of(sessionId).note('tool.log', { what: 'entered' });
        return 'done once';
      },
    }),
  ],
  transformContext: through('transformContext'),
  convertToLlm: through('convertToLlm') as never,
  beforeToolCall: () => pass('beforeToolCall'),
  afterToolCall: () => pass('afterToolCall'),
  getSteeringMessages: listOf('getSteeringMessages'),
  getFollowUpMessages: listOf('getFollowUpMessages'),
});
const events = [
  'before_agent_start',
  'context',
  'tool_call',
  'tool_result',
  'before_provider_request',
  'before_provider_payload',
] as const;
for (const event of events) agent.on(event, (() => pass(event)) as AgentHarnessHandler<typeof event>);

const worker = await createWorker({
  agents: [agent],
  store: config.store,
  address: config.address,
  taskQueue: config.taskQueue,
  workflowBundle: { codePath: config.bundle },
  providers: [
    scriptedModel({
      replies: [{ calls: [{ name: 'once' }] }, { text: 'Done' }],
      requestLog: root.path('requests.jsonl'),
    }),
  ],
});
process.on('disconnect', () => process.exit(1));
const running = worker.run();
process.send?.('ready');
await running;

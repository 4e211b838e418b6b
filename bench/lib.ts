import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Agent, type AgentOptions, defineAgent, defineTool } from 'everturn';
import { AgentClient } from 'everturn/client';
import { type ScriptedReplies, scriptedModel } from 'everturn/testing';
import { createWorker } from 'everturn/worker';
import { z } from 'zod';
import { type DevServer, startDevServer } from '../src/cli/dev-server.ts';

export const kilobyte = 'x'.repeat(1_000);

/** What a benchmark prints: one JSON line with --json, else a table. */
export type Figures = Record<string, number | string | boolean | object>;

/** A Temporal server, a store and a temporary folder, all gone at the end. */
export async function withServer<T>(work: (place: { server: DevServer; folder: string }) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'everturn-bench-'));
  const server = await startDevServer();
  try {
    return await work({ server, folder });
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A scripted model without latency that calls one tool a turn for `turns` turns: 1 KB messages. */
export function toolTurns(turns: number): ScriptedReplies {
  return (request) => {
    const done = request.messages.filter((message) => message.role === 'assistant').length;
    return done < turns - 1
      ? { text: kilobyte, calls: [{ name: 'echo', args: { n: done } }], chunks: 1 }
      : { text: 'done', chunks: 1 };
  };
}

export const echoTool = (options: { local?: boolean } = {}) =>
  defineTool({
    name: 'echo',
    description: 'Gives a kilobyte back.',
    parameters: z.object({ n: z.number() }),
    replay: 'safe',
    local: options.local ?? false,
    execute: () => kilobyte,
  });

export interface Bed {
  client: AgentClient;
  agent: Agent;
}

/** One worker and one client in this process. */
export async function withEverturn<T>(
  place: { server: DevServer; folder: string },
  replies: ScriptedReplies,
  options: Partial<AgentOptions>,
  work: (bed: Bed) => Promise<T>,
): Promise<T> {
  const model = scriptedModel({ replies });
  const agent = defineAgent({ name: 'bench', model: model.ref, ...options });
  const store = join(place.folder, `store-${performance.now()}`);
  const taskQueue = `bench-${performance.now()}`;
  const { address } = place.server;
  const worker = await createWorker({ agents: [agent], store, address, taskQueue, providers: [model] });
  const running = worker.run();
  const client = await AgentClient.connect({ store, address, taskQueue });
  try {
    return await work({ client, agent });
  } finally {
    worker.shutdown();
    await running;
    await client.close();
  }
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function round(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}

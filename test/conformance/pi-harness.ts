import {
  AgentHarness,
  type AgentHarnessEventResultMap,
  type AgentHarnessOptions,
  InMemorySessionStorage,
  Session,
} from '@earendil-works/pi-agent-core';
import { piStream, toModel } from './model.ts';
import { image, resources, templateArgs } from './moves.ts';
import { plain } from './normal.ts';
import type { Observation, RunEnd } from './observation.ts';
import { seePiEvent } from './pi-events.ts';
import { combine } from './pi-handlers.ts';
import { Play } from './play.ts';
import { type Action, baseSystemPrompt, type Scenario, type Setup } from './scenario.ts';
import { playTools } from './tools.ts';

/** Headers that the agent itself sets, for patches to change. */
export const baseHeaders = { 'x-base': 'yes' };

/** Plays a scenario of the harness layer on pi's AgentHarness. */
export async function playOnPiHarness(scenario: Scenario, bare = false): Promise<Observation> {
  const setup = scenario.setup as Extract<Setup, { layer: 'harness' }>;
  const storage = new InMemorySessionStorage({
    metadata: { id: 'session', createdAt: '2026-01-01T00:00:00.000Z' } as never,
  });
  const session = new Session(storage as never);
  const aborts: Promise<unknown>[] = [];
  const play: Play = new Play(scenario, async (action) => act(harness, action, aborts));
  const harness = new AgentHarness({
    session,
    // pi-ai 0.83's collection of models, as far as the harness calls it.
    models: { streamSimple: piStream(play) } as unknown as AgentHarnessOptions['models'],
    model: toModel('main') as never,
    tools: playTools(() => play) as never,
    systemPrompt: baseSystemPrompt,
    resources,
    streamOptions: { headers: baseHeaders },
    thinkingLevel: scenario.level,
    steeringMode: setup.steeringMode,
    followUpMode: setup.followUpMode,
  });
  const events: Observation['events'] = [];
  harness.subscribe((event) => {
    if (event.type === 'tool_execution_end') play.ended(event.toolCallId);
    const seen = seePiEvent(event);
    if (seen !== undefined) events.push(seen);
  });
  install(harness, setup, play, bare);
  const ends: RunEnd[] = [];
  for (const [index, run] of scenario.runs.entries()) {
    await play.perform('idle', run.before);
    play.beginRun(index);
    ends.push(await runOnce(harness, run.prompt, play));
    await Promise.all(aborts.splice(0));
  }
  const entries = await session.getBranch();
  const transcript = entries.map(
    ({ id: _, parentId: __, ...entry }) => plain(entry) as Observation['transcript'][number],
  );
  return { transcript, requests: play.requests, calls: play.calls, events, ends, policyCalls: [] };
}

async function runOnce(harness: AgentHarness, prompt: Scenario['runs'][number]['prompt'], play: Play): Promise<RunEnd> {
  try {
    const { stopReason } = await open(harness, prompt);
    return { status: play.aborted ? 'aborted' : stopReason === 'error' ? 'error' : 'done' };
  } catch (error) {
    return { status: 'rejected', thrown: (error as Error).message };
  }
}

function open(harness: AgentHarness, { text, image: withImage, by }: Scenario['runs'][number]['prompt']) {
  if (by === 'skill') return harness.skill('helper', text);
  if (by === 'template') return harness.promptFromTemplate('ask', templateArgs(text));
  return harness.prompt(text, withImage ? { images: [image] } : {});
}

async function act(harness: AgentHarness, action: Action, aborts: Promise<unknown>[]): Promise<void> {
  switch (action.do) {
    case 'steer':
    case 'followUp':
    case 'nextTurn':
      return harness[action.do](action.text, action.image ? { images: [image] } : {});
    case 'abort':
      // It waits for the end of the run, and is called inside of it.
      aborts.push(harness.abort());
      return undefined;
    case 'setModel':
      return harness.setModel(toModel(action.model.slice('play/'.length)) as never);
    case 'setThinkingLevel':
      return harness.setThinkingLevel(action.level);
    case 'setActiveTools':
      return harness.setActiveTools(action.tools);
    case 'setQueueMode':
      if (action.queue === 'steer') await harness.setSteeringMode(action.mode);
      else await harness.setFollowUpMode(action.mode);
      return undefined;
  }
}

type Answer<Name extends keyof AgentHarnessEventResultMap> = AgentHarnessEventResultMap[Name];

function install(
  harness: AgentHarness,
  { handlers }: Extract<Setup, { layer: 'harness' }>,
  play: Play,
  bare: boolean,
): void {
  const range = (count: number) => Array.from({ length: count }, (_, handler) => handler);
  const all = {
    before_agent_start: range(handlers.before_agent_start),
    context: range(handlers.context),
    before_provider_request: range(handlers.before_provider_request),
    before_provider_payload: range(handlers.before_provider_payload),
    tool_call: range(handlers.tool_call),
    tool_result: range(handlers.tool_result),
  };
  for (const handler of all.before_provider_request) {
    harness.on('before_provider_request', async ({ model, streamOptions }) => {
      return (await play.request(handler, model, streamOptions)) as Answer<'before_provider_request'>;
    });
  }
  for (const handler of all.before_provider_payload) {
    harness.on('before_provider_payload', ({ model, payload }) => play.payload(handler, model, payload));
  }
  const { start, context, gate, result } = combine(play);
  // Bare, each handler is registered by itself; else one handler stands for all of an event.
  const groups = (handlers: number[]) =>
    bare ? handlers.map((handler) => [handler]) : [handlers].filter(({ length }) => length > 0);
  for (const group of groups(all.before_agent_start))
    harness.on('before_agent_start', (event) => start(group, event) as never);
  for (const group of groups(all.context)) harness.on('context', (event) => context(group, event.messages) as never);
  for (const group of groups(all.tool_call)) harness.on('tool_call', (event) => gate(group, event));
  for (const group of groups(all.tool_result))
    harness.on('tool_result', (event) => result(group, event as never) as never);
}

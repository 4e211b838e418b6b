import {
  type AgentContext,
  type AgentLoopConfig,
  type AgentMessage,
  runAgentLoop,
} from '@earendil-works/pi-agent-core';
import { piStream, toModel } from './model.ts';
import { image, text } from './moves.ts';
import { plain, plainMessage } from './normal.ts';
import type { Observation } from './observation.ts';
import { seePiEvent } from './pi-events.ts';
import { baseHeaders } from './pi-harness.ts';
import { type HookContext, Play } from './play.ts';
import { marksOf, nextTurnOf, type PolicyCall, type PolicyMoment, policyCall } from './policy-script.ts';
import { baseSystemPrompt, type Scenario, type Setup } from './scenario.ts';
import { playTools } from './tools.ts';

type LoopSetup = Extract<Setup, { layer: 'loop' }>;

/** Plays a scenario of the loop layer on pi's low-level loop, run after run over one list of messages. */
export async function playOnPiLoop(scenario: Scenario, bare = false): Promise<Observation> {
  let controller = new AbortController();
  const play: Play = new Play(scenario, async (action) => {
    if (action.do === 'abort') controller.abort();
  });
  const policyCalls: PolicyCall[] = [];
  const events: Observation['events'] = [];
  const ends: Observation['ends'] = [];
  const messages: AgentMessage[] = [];
  for (const [index, { prompt }] of scenario.runs.entries()) {
    controller = new AbortController();
    play.beginRun(index);
    const user = {
      role: 'user',
      content: [...text(prompt.text), ...(prompt.image ? [image] : [])],
      timestamp: Date.now(),
    };
    const context: AgentContext = {
      systemPrompt: baseSystemPrompt,
      messages: [...messages],
      tools: playTools(() => play),
    };
    const added = await runAgentLoop(
      [user as AgentMessage],
      context,
      configOf(scenario, play, policyCalls, bare),
      (event) => {
        if (event.type === 'tool_execution_end') play.ended(event.toolCallId);
        const seen = seePiEvent(event);
        if (seen !== undefined) events.push(seen);
      },
      controller.signal,
      piStream(play) as never,
    );
    messages.push(...added);
    const last = added.findLast((message) => message.role === 'assistant');
    ends.push({ status: play.aborted ? 'aborted' : last?.stopReason === 'error' ? 'error' : 'done' });
  }
  const transcript = messages.map(
    (message) => plain({ type: 'message', message }) as Observation['transcript'][number],
  );
  return { transcript, requests: play.requests, calls: play.calls, events, ends, policyCalls: policyCalls.map(plain) };
}

function configOf(scenario: Scenario, play: Play, policyCalls: PolicyCall[], bare: boolean): AgentLoopConfig {
  const setup = scenario.setup as LoopSetup;
  const { hooks } = setup;
  return {
    model: toModel('main') as never,
    ...(scenario.level === 'off' ? {} : { reasoning: scenario.level }),
    sessionId: 'session',
    headers: baseHeaders,
    toolExecution: setup.toolExecution,
    ...loopHookOptions(play, hooks),
    ...(hooks.convertToLlm ? {} : { convertToLlm: (messages: AgentMessage[]) => messages as never }),
    ...policyOptions(setup, policyCalls, bare),
  } as AgentLoopConfig;
}

/** The hooks of the agent layer, by one code for both sides. */
export function loopHookOptions(play: Play | (() => Play), hooks: LoopSetup['hooks']) {
  const of = typeof play === 'function' ? play : () => play;
  const seen = ({ systemPrompt, messages, tools = [] }: HookContext, signal?: AbortSignal) => ({
    context: { systemPrompt, messages: messages.map(plainMessage), tools: tools.map(({ name }) => name) },
    signal: signal !== undefined,
  });
  type Call = { toolCall: { id: string; name: string }; args: object; context: HookContext };
  return {
    ...(hooks.convertToLlm
      ? { convertToLlm: async (messages: object[]) => (await of().context('convertToLlm', 0, messages)) ?? messages }
      : {}),
    ...(hooks.transformContext
      ? {
          transformContext: async (messages: object[]) =>
            (await of().context('transformContext', 0, messages)) ?? messages,
        }
      : {}),
    ...(hooks.beforeToolCall
      ? {
          beforeToolCall: ({ toolCall, args, context }: Call, signal?: AbortSignal) =>
            of().gate('beforeToolCall', 0, toolCall.id, args, { toolCall, ...seen(context, signal) }),
        }
      : {}),
    ...(hooks.afterToolCall
      ? {
          afterToolCall: (
            { toolCall, args, context, result, isError }: Call & { result: object; isError: boolean },
            signal?: AbortSignal,
          ) =>
            of().result('afterToolCall', 0, toolCall.id, { toolCall, args, result, isError, ...seen(context, signal) }),
        }
      : {}),
    ...(hooks.queueHooks
      ? {
          getSteeringMessages: () => of().poll('steering'),
          getFollowUpMessages: () => of().poll('followUps'),
        }
      : {}),
  };
}

/**
 * The policies. With both of them, difference 1 decides: the stop is asked first, and the next turn is prepared only when
 * the run goes on; pi then gets the answer at its own place. With one of them pi's order shows nothing.
 */
function policyOptions({ policy }: LoopSetup, calls: PolicyCall[], bare: boolean) {
  const stop = (moment: PolicyMoment) => {
    calls.push(policyCall('shouldStopAfterTurn', moment));
    return marksOf(moment.message.content).stop;
  };
  const prepare = (moment: PolicyMoment) => {
    calls.push(policyCall('prepareNextTurn', moment));
    const update = nextTurnOf(moment);
    if (update === undefined) return undefined;
    const { model, level, context } = update;
    return {
      ...(context === undefined ? {} : { context }),
      ...(model === undefined ? {} : { model: toModel(model.slice('play/'.length)) }),
      ...(level === undefined ? {} : { thinkingLevel: level }),
    };
  };
  if (policy === 'none') return {};
  if (policy === 'stop') return { shouldStopAfterTurn: stop };
  if (policy === 'prepare') return { prepareNextTurn: prepare };
  if (bare) return { shouldStopAfterTurn: stop, prepareNextTurn: prepare };
  let stopping = false;
  return {
    prepareNextTurn: (moment: PolicyMoment) => {
      stopping = stop(moment);
      return stopping ? undefined : prepare(moment);
    },
    shouldStopAfterTurn: () => stopping,
  };
}

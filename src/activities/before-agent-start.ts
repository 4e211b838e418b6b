import type { Agent } from '../agent/agent.ts';
import type { ExpandInput, ExpandResult, StartInput, StartResult } from '../common/effects.ts';
import { EverturnError } from '../common/errors.ts';
import { type AgentMessage, type ImageContent, parseIncoming, textOf } from '../common/messages.ts';
import type { BeforeAgentStartResult } from '../hooks/harness-types.ts';
import { expandByName } from '../hooks/prompts.ts';
import { putJson } from './blobs.ts';
import { type Effect, runEffect } from './effect.ts';
import { callHook } from './hooks/run-hook.ts';
import { systemPromptOf } from './model/build-request.ts';
import { agentOf, type Runtime } from './runtime.ts';

/**
 * The gate before a run: the handlers of before_agent_start, each of which may add messages and replace the system prompt
 * that the next one sees. It reserves the run first, so a repeated prompt asks nobody.
 */
export function beforeAgentStart(runtime: Runtime, input: StartInput): Promise<StartResult> {
  const first = { openRun: { runId: input.runId, token: input.openRun } };
  const place = { effect: `${input.runId}/start`, runId: input.runId, turn: input.turn, first };
  return runEffect(runtime, place, async (effect) => {
    const agent = agentOf(runtime, input.agent);
    const { runEnded, committed } = effect.begun;
    if (runEnded || committed?.duplicateRun !== undefined) return { duplicate: true, messages: [] };
    if (agent.registry.known('before_agent_start') < input.handlers) {
      throw new EverturnError(
        'hook',
        'This worker lacks a before_agent_start handler that the session was opened with. Deploy the same agent to all workers.',
        {
          details: { hook: 'before_agent_start' },
        },
      );
    }
    const result = await askHandlers(runtime, effect, agent, input);
    await effect.kept();
    const { adopted } = await effect.commit({ result: JSON.parse(JSON.stringify(result)) });
    return (adopted as StartResult | undefined) ?? result;
  });
}

async function askHandlers(runtime: Runtime, effect: Effect, agent: Agent, input: StartInput): Promise<StartResult> {
  const original = await systemPromptOf(effect, agent, input);
  const prompt = input.messages.findLast((message) => message.role === 'user') ?? input.messages.at(-1);
  const images = prompt === undefined ? [] : imagesOf(prompt);
  const messages: AgentMessage[] = [];
  let systemPrompt = original;
  for (const [handler, entry] of agent.registry.handlers('before_agent_start').entries()) {
    const answer = await callHook<BeforeAgentStartResult | undefined>(effect, {
      hook: 'before_agent_start',
      handler,
      settings: entry.settings,
      call: async () => {
        const event = {
          type: 'before_agent_start',
          prompt: prompt === undefined ? '' : textOf(prompt),
          ...(images.length === 0 ? {} : { images }),
          systemPrompt,
          resources: structuredClone(agent.resources),
        } as const;
        return checkAnswer(await entry.handler(event, effect.signal));
      },
      describe: (result) => ({
        messages: result?.messages?.length ?? 0,
        systemPrompt: result?.systemPrompt !== undefined,
      }),
    });
    messages.push(...(answer?.messages ?? []));
    systemPrompt = answer?.systemPrompt ?? systemPrompt;
  }
  if (systemPrompt === original) return { messages };
  return { messages, systemPrompt: await putJson(runtime, systemPrompt) };
}

function checkAnswer(answer: BeforeAgentStartResult | undefined): BeforeAgentStartResult | undefined {
  if (answer === undefined || answer === null) return undefined;
  if (answer.systemPrompt !== undefined && typeof answer.systemPrompt !== 'string')
    throw new Error('systemPrompt must be a string');
  const messages = answer.messages?.map((message) => parseIncoming(message, Date.now()));
  return { ...answer, ...(messages === undefined ? {} : { messages }) };
}

function imagesOf(message: AgentMessage): ImageContent[] {
  const { content } = message as { content?: unknown };
  return Array.isArray(content) ? content.filter((block) => (block as { type?: string }).type === 'image') : [];
}

/** The text of a prompt by name, from the agent's resources. */
export async function expandPrompt(runtime: Runtime, input: ExpandInput): Promise<ExpandResult> {
  return { text: expandByName(agentOf(runtime, input.agent).resources, input.prompt) };
}

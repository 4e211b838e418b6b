import type { Agent } from '../../agent/agent.ts';
import { EverturnError } from '../../common/errors.ts';
import { type AssistantMessage, type ToolCall, toolCallsOf } from '../../common/messages.ts';
import type { AgentContext } from '../../common/policy.ts';
import type { Effect } from '../effect.ts';
import { contextOf, readFrame } from '../model/build-request.ts';
import type { Runtime } from '../runtime.ts';

/** The reply that holds a batch of calls. */
export async function readReply(runtime: Runtime, sessionId: string, entryId: string): Promise<AssistantMessage> {
  const recent = runtime.contexts.recent(sessionId, entryId);
  if (recent?.role === 'assistant') return recent as AssistantMessage;
  const [entry] = await runtime.store.readEntries(sessionId, [entryId]);
  if (entry?.type !== 'message' || entry.message.role !== 'assistant') {
    throw new EverturnError('store', `Entry ${entryId} of session ${sessionId} is no assistant message.`);
  }
  return entry.message as AssistantMessage;
}

export function callAt(message: AssistantMessage, index: number): ToolCall {
  const call = toolCallsOf(message)[index];
  if (call === undefined) throw new EverturnError('store', `The reply has no tool call ${index}.`);
  return call;
}

/** What tool hooks see: the transcript up to the reply that calls, with the system prompt and tools of its request. */
export async function hookContext(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  { entryId, runId, turn }: { entryId: string; runId: string; turn: number },
): Promise<AgentContext> {
  const { sessionId } = effect.fence;
  const items = await runtime.contexts.read(sessionId, entryId);
  const frame = await readFrame(runtime, sessionId, runId, turn);
  const tools = agent.tools.filter((tool) => frame.tools.some(({ name }) => name === tool.name));
  return {
    systemPrompt: frame.systemPrompt,
    messages: await contextOf(runtime, items, frame),
    tools: tools.map(({ name, description }) => ({ name, description })),
  };
}

import type { AgentEvent, AgentHarnessEvent } from '@earendil-works/pi-agent-core';
import { type Plain, plain, plainMessage } from './normal.ts';
import type { SeenEvent } from './observation.ts';

const texts = (messages: readonly { content?: unknown }[]): Plain => messages.map(({ content }) => plain(content));

/**
 * An event of pi by its key fields; undefined for those that others repeat. Of a message the end counts; what was
 * streamed before it is told by `collapse`.
 */
export function seePiEvent(event: AgentEvent | AgentHarnessEvent): SeenEvent | undefined {
  switch (event.type) {
    case 'agent_end':
      return { type: 'agent_end', messages: event.messages.map((message) => plainMessage(message) as Plain) };
    case 'turn_end':
      return {
        type: 'turn_end',
        message: plainMessage(event.message) as Plain,
        toolResults: event.toolResults.map(({ toolCallId }) => toolCallId),
      };
    case 'message_start':
      return { type: 'message_start', role: event.message.role };
    case 'message_update':
      return { type: 'message_update', update: event.assistantMessageEvent.type };
    case 'message_end':
      return { type: 'message_end', message: plainMessage(event.message) as Plain };
    case 'tool_execution_start':
      return { type: event.type, call: event.toolCallId, tool: event.toolName, args: plain(event.args) };
    case 'tool_execution_update':
      return {
        type: event.type,
        call: event.toolCallId,
        tool: event.toolName,
        partialResult: plain(event.partialResult),
      };
    case 'tool_execution_end':
      return {
        type: event.type,
        call: event.toolCallId,
        tool: event.toolName,
        result: plain(event.result),
        isError: event.isError,
      };
    case 'queue_update':
      return {
        type: event.type,
        steer: texts(event.steer as never),
        followUp: texts(event.followUp as never),
        nextTurn: texts(event.nextTurn as never),
      };
    case 'abort':
      return {
        type: event.type,
        clearedSteer: texts(event.clearedSteer as never),
        clearedFollowUp: texts(event.clearedFollowUp as never),
      };
    case 'settled':
      return { type: event.type, nextTurnCount: event.nextTurnCount };
    case 'save_point':
      return { type: event.type, hadPendingMutations: event.hadPendingMutations };
    case 'after_provider_response':
      return { type: event.type, status: event.status };
    case 'model_update':
      return { type: event.type, model: `${event.model.provider}/${event.model.id}`, source: event.source };
    case 'thinking_level_update':
      return { type: event.type, level: event.level };
    case 'tools_update':
      return { type: event.type, activeToolNames: event.activeToolNames };
    default:
      return { type: event.type };
  }
}

/**
 * The start, the updates and the end of a message become one event, however the stream was cut into deltas. Its start
 * must come before its end, and no other message may begin in between: what is wrong shows as an event of its own.
 */
export function collapse(events: readonly SeenEvent[]): SeenEvent[] {
  const seen: SeenEvent[] = [];
  let open: { role: string; updates: string[] } | undefined;
  for (const event of events) {
    if (event.type === 'message_start') {
      if (open !== undefined) seen.push({ type: 'message without end', role: open.role });
      open = { role: String(event.role), updates: [] };
    } else if (event.type === 'message_update') {
      const update = String(event.update);
      if (open === undefined) seen.push({ type: 'update without message' });
      else if (open.updates.at(-1) !== update) open.updates.push(update);
    } else if (event.type === 'message_end') {
      if (open === undefined) seen.push({ type: 'message without start' });
      seen.push({ type: 'message', message: event.message as Plain, updates: open?.updates ?? [] });
      open = undefined;
    } else seen.push(event);
  }
  if (open !== undefined) seen.push({ type: 'message without end', role: open.role });
  return seen;
}

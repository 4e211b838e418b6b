import type { SessionEvent } from '../../src/common/events.ts';
import { type Plain, plain, plainMessage } from './normal.ts';
import type { SeenEvent } from './observation.ts';

type Queued = readonly { message: { content?: unknown } }[];
const texts = (items: Queued): Plain => items.map(({ message }) => plain(message.content));

/**
 * An event of Everturn by the key fields that pi has too. Difference 37: those that pi has none of are left out, and so are
 * the fields that it adds.
 */
export function seeEverturnEvent(event: SessionEvent): SeenEvent | undefined {
  switch (event.type) {
    case 'session_open':
    case 'entry':
    case 'hook':
      return undefined;
    case 'agent_end':
      return { type: event.type, messages: event.messages.map((message) => plainMessage(message) as Plain) };
    case 'turn_end':
      return {
        type: event.type,
        message: plainMessage(event.message) as Plain,
        toolResults: event.toolResults.map(({ toolCallId }) => toolCallId),
      };
    case 'message_start':
      return { type: event.type, role: event.message.role };
    case 'message_update':
      return { type: event.type, update: event.delta.type };
    case 'message_end':
      return { type: event.type, message: plainMessage(event.message) as Plain };
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
        steer: texts(event.steer),
        followUp: texts(event.followUp),
        nextTurn: texts(event.nextTurn),
      };
    case 'abort':
      return {
        type: event.type,
        clearedSteer: texts(event.clearedSteer),
        clearedFollowUp: texts(event.clearedFollowUp),
      };
    case 'settled':
      return { type: event.type, nextTurnCount: event.nextTurnCount };
    case 'save_point':
      return { type: event.type, hadPendingMutations: event.hadPendingMutations };
    case 'after_provider_response':
      return { type: event.type, status: event.status };
    case 'model_update':
      return { type: event.type, model: event.model, source: event.source };
    case 'thinking_level_update':
      return { type: event.type, level: event.level };
    case 'tools_update':
      return { type: event.type, activeToolNames: event.activeToolNames };
    default:
      return { type: event.type };
  }
}

import type { QueuedMessage, SessionEvent } from '../../src/common/events.ts';
import { textOf } from '../../src/common/messages.ts';
import { words } from './transcript.ts';

/** What the harness layer tells beside pi's loop, proved with its hooks: left out here. */
const besideTheLoop: readonly SessionEvent['type'][] = ['after_provider_response', 'save_point', 'hook'];

/**
 * Events in words, one for each. The start and the end of a message make one word where they stand side by side, as they
 * do for every message of the log.
 */
export function eventWords(all: readonly SessionEvent[]): string[] {
  const said: string[] = [];
  const events = all.filter(({ type }) => !besideTheLoop.includes(type));
  for (let index = 0; index < events.length; index++) {
    const event = events[index];
    const next = events[index + 1];
    if (event === undefined) continue;
    if (event.type === 'message_start' && next?.type === 'message_end' && next.entryId === event.entryId) {
      said.push(...words([next.message]));
      index += 1;
    } else said.push(wordOf(event));
  }
  return said;
}

function wordOf(event: SessionEvent): string {
  switch (event.type) {
    case 'tool_execution_start':
      return `start ${event.toolCallId}`;
    case 'tool_execution_end':
      return `end ${event.toolCallId}: ${event.outcome}`;
    case 'turn_end':
      return ['turn_end', ...event.toolResults.map((result) => result.toolCallId)].join(' ');
    case 'agent_end':
      return `agent_end: ${[event.status, event.error?.code].filter(Boolean).join(' ')}`;
    case 'queue_update':
      return queueWords({ steer: event.steer, followUp: event.followUp, nextTurn: event.nextTurn });
    case 'abort':
      return `abort ${queueWords({ steer: event.clearedSteer, followUp: event.clearedFollowUp })}`;
    case 'signal_rejected':
      return `rejected ${event.signal}`;
    case 'entry':
      return `entry ${event.entry.type}`;
    case 'settled':
      return event.nextTurnCount === 0 ? 'settled' : `settled, ${event.nextTurnCount} for the next turn`;
    default:
      return event.type;
  }
}

function queueWords(queues: Record<string, QueuedMessage[]>): string {
  const filled = Object.entries(queues).filter(([, items]) => items.length > 0);
  return `queue [${filled.map(([name, items]) => `${name}: ${items.map(({ message }) => textOf(message)).join(', ')}`).join('; ')}]`;
}

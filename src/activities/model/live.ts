import type { AssistantMessageEvent } from '@earendil-works/pi-ai';
import type { StreamDelta } from '../../common/events.ts';

/** What a live reader gets of one provider event; nothing for those that the message itself ends. */
export function toDelta(event: AssistantMessageEvent): StreamDelta | undefined {
  switch (event.type) {
    case 'text_start':
    case 'thinking_start':
    case 'text_end':
    case 'thinking_end':
    case 'toolcall_end':
      return { type: event.type, contentIndex: event.contentIndex };
    case 'text_delta':
    case 'thinking_delta':
    case 'toolcall_delta':
      return { type: event.type, contentIndex: event.contentIndex, delta: event.delta };
    case 'toolcall_start': {
      const block = event.partial.content[event.contentIndex];
      const call = block?.type === 'toolCall' ? block : { id: '', name: '' };
      return { type: 'toolcall_start', contentIndex: event.contentIndex, id: call.id, name: call.name };
    }
    default:
      return undefined;
  }
}

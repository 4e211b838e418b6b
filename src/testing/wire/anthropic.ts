import type { Json } from '../../common/json.ts';
import { argumentChunks, type Frame, type ReplyBlock, type ReplyError, sse, type WireFormat } from './types.ts';

/** Anthropic Messages: named events, content blocks with start, deltas and stop. */
export const anthropicWire: WireFormat = {
  frames(reply, model, id) {
    const usage = reply.usage ?? {};
    const content = reply.content ?? [];
    const stop = content.some((block) => block.type === 'toolCall') ? 'tool_use' : 'end_turn';
    const frames: Frame[] = [
      event({
        type: 'message_start',
        message: {
          id,
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: {
            input_tokens: usage.input ?? 0,
            output_tokens: 1,
            cache_read_input_tokens: usage.cacheRead ?? 0,
            cache_creation_input_tokens: usage.cacheWrite ?? 0,
          },
        },
      }),
    ];
    let index = 0;
    for (const block of content) {
      if (block.type === 'ping') {
        frames.push({ ...event({ type: 'ping' }), delta: true });
        continue;
      }
      frames.push(event({ type: 'content_block_start', index, content_block: opening(block, index) }));
      for (const delta of deltas(block)) {
        const signature = 'type' in delta && delta.type === 'signature_delta';
        frames.push({ ...event({ type: 'content_block_delta', index, delta }), delta: !signature });
      }
      frames.push(event({ type: 'content_block_stop', index }));
      index += 1;
    }
    frames.push(
      event({
        type: 'message_delta',
        delta: { stop_reason: reply.stopReason ?? stop, stop_sequence: null },
        usage: {
          output_tokens: usage.output ?? 0,
          ...(usage.reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
        },
      }),
      event({ type: 'message_stop' }),
    );
    return frames;
  },
  errorFrame: (error) => sse(errorObject(error), 'error'),
  errorBody: (error) => JSON.stringify(errorObject(error)),
  malformedFrame: 'event: content_block_delta\ndata: <html>502 Bad Gateway\n\n',
};

function event(data: { type: string; [key: string]: Json }): Frame {
  return { text: sse(data, data.type), delta: false };
}

function opening(block: Exclude<ReplyBlock, { type: 'ping' }>, index: number): Json {
  if (block.type === 'text') return { type: 'text', text: '' };
  if (block.type === 'thinking') return { type: 'thinking', thinking: '', signature: '' };
  return { type: 'tool_use', id: block.id ?? `call_${index}`, name: block.name, input: {} };
}

function deltas(block: Exclude<ReplyBlock, { type: 'ping' }>): { [key: string]: Json }[] {
  if (block.type === 'text') return block.chunks.map((text) => ({ type: 'text_delta', text }));
  if (block.type === 'toolCall') {
    return argumentChunks(block).map((partial_json) => ({ type: 'input_json_delta', partial_json }));
  }
  const thoughts = block.chunks.map((thinking) => ({ type: 'thinking_delta', thinking }));
  const { signature } = block;
  return signature === undefined ? thoughts : [...thoughts, { type: 'signature_delta', signature }];
}

function errorObject(error: ReplyError): Json {
  return {
    type: 'error',
    error: { details: null, type: error.type ?? 'api_error', message: error.message },
    request_id: 'req_test',
  };
}

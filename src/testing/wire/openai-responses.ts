import type { Json } from '../../common/json.ts';
import { openAIError } from './openai-completions.ts';
import { argumentChunks, type Frame, type ProviderReply, type ReplyBlock, sse, type WireFormat } from './types.ts';

type JsonFields = { [key: string]: Json };

/** OpenAI responses: named, numbered events; output items with added, deltas and done. */
export const responsesWire: WireFormat = {
  frames(reply, model, id) {
    const frames: Frame[] = [];
    let sequence = 0;
    const emit = (type: string, fields: JsonFields, delta = false): void => {
      frames.push({ text: sse({ type, sequence_number: sequence, ...fields }, type), delta });
      sequence += 1;
    };
    const response = { id, object: 'response', created_at: 1_700_000_000, model, output: [] };
    emit('response.created', { response: { ...response, status: 'in_progress' } });
    emit('response.in_progress', { response: { ...response, status: 'in_progress' } });
    const output: Json[] = [];
    for (const block of reply.content ?? []) {
      if (block.type === 'ping') frames.push({ text: ': keep-alive\n\n', delta: true });
      else output.push(item(block, output.length, emit));
    }
    const incomplete = reply.stopReason !== undefined && reply.stopReason !== 'completed';
    const status = incomplete ? 'incomplete' : 'completed';
    const last = {
      ...response,
      status,
      incomplete_details: incomplete ? { reason: reply.stopReason ?? null } : null,
      output,
      usage: usageOf(reply),
    };
    emit(`response.${status}`, { response: last });
    return frames;
  },
  errorFrame: ({ message, code }) => sse({ type: 'error', code: code ?? null, message, param: null }, 'error'),
  errorBody: (error) => JSON.stringify(openAIError(error)),
  malformedFrame: 'event: response.output_text.delta\ndata: {"type": "response.output\n\n',
};

function item(
  block: Exclude<ReplyBlock, { type: 'ping' }>,
  index: number,
  emit: (type: string, fields: JsonFields, delta?: boolean) => void,
): Json {
  const at = { output_index: index };
  if (block.type === 'text') {
    const head = { type: 'message', id: `msg_${index}`, role: 'assistant' };
    const part = { item_id: head.id, ...at, content_index: 0 };
    emit('response.output_item.added', { ...at, item: { ...head, status: 'in_progress', content: [] } });
    emit('response.content_part.added', { ...part, part: { type: 'output_text', text: '', annotations: [] } });
    for (const delta of block.chunks) emit('response.output_text.delta', { ...part, delta }, true);
    const text = block.chunks.join('');
    const content = { type: 'output_text', text, annotations: [] };
    emit('response.output_text.done', { ...part, text });
    emit('response.content_part.done', { ...part, part: content });
    const done = { ...head, status: 'completed', content: [content] };
    emit('response.output_item.done', { ...at, item: done });
    return done;
  }
  if (block.type === 'thinking') {
    const head = { type: 'reasoning', id: `rs_${index}` };
    const part = { item_id: head.id, ...at, summary_index: 0 };
    emit('response.output_item.added', { ...at, item: { ...head, summary: [] } });
    emit('response.reasoning_summary_part.added', { ...part, part: { type: 'summary_text', text: '' } });
    for (const delta of block.chunks) emit('response.reasoning_summary_text.delta', { ...part, delta }, true);
    const summary = { type: 'summary_text', text: block.chunks.join('') };
    emit('response.reasoning_summary_text.done', { ...part, text: summary.text });
    emit('response.reasoning_summary_part.done', { ...part, part: summary });
    const done = { ...head, summary: [summary], encrypted_content: block.signature ?? null };
    emit('response.output_item.done', { ...at, item: done });
    return done;
  }
  const call = { type: 'function_call', id: `fc_${index}`, call_id: block.id ?? `call_${index}`, name: block.name };
  const part = { item_id: call.id, ...at };
  emit('response.output_item.added', { ...at, item: { ...call, status: 'in_progress', arguments: '' } });
  const pieces = argumentChunks(block);
  for (const delta of pieces) emit('response.function_call_arguments.delta', { ...part, delta }, true);
  const done = { ...call, status: 'completed', arguments: pieces.join('') };
  emit('response.function_call_arguments.done', { ...part, arguments: done.arguments });
  emit('response.output_item.done', { ...at, item: done });
  return done;
}

function usageOf(reply: ProviderReply): Json {
  const { input = 0, output = 0, cacheRead = 0, reasoning = 0 } = reply.usage ?? {};
  return {
    input_tokens: input + cacheRead,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + cacheRead + output,
  };
}

import type { Json } from '../../common/json.ts';
import { argumentChunks, type Frame, type ReplyError, sse, type WireFormat } from './types.ts';

/** OpenAI chat completions: unnamed chunks with a delta, a chunk with usage alone, `[DONE]`. */
export const completionsWire: WireFormat = {
  frames(reply, model, id) {
    const content = reply.content ?? [];
    const head = { id, object: 'chat.completion.chunk', created: 1_700_000_000, model };
    const chunk = (delta: Json, finish: string | null = null): string =>
      sse({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }], usage: null });
    const frames: Frame[] = [{ text: chunk({ role: 'assistant', content: '' }), delta: false }];
    let call = 0;
    for (const block of content) {
      if (block.type === 'ping') {
        frames.push({ text: ': keep-alive\n\n', delta: true });
      } else if (block.type === 'text') {
        for (const text of block.chunks) frames.push({ text: chunk({ content: text }), delta: true });
      } else if (block.type === 'thinking') {
        for (const text of block.chunks) frames.push({ text: chunk({ reasoning_content: text }), delta: true });
      } else {
        const opening = { index: call, id: block.id ?? `call_${call}`, type: 'function' };
        const first = { ...opening, function: { name: block.name, arguments: '' } };
        frames.push({ text: chunk({ tool_calls: [first] }), delta: false });
        for (const part of argumentChunks(block)) {
          const more = { index: call, function: { arguments: part } };
          frames.push({ text: chunk({ tool_calls: [more] }), delta: true });
        }
        call += 1;
      }
    }
    const usage = reply.usage ?? {};
    const prompt = (usage.input ?? 0) + (usage.cacheRead ?? 0);
    const counted = {
      prompt_tokens: prompt,
      completion_tokens: usage.output ?? 0,
      total_tokens: prompt + (usage.output ?? 0),
      prompt_tokens_details: { cached_tokens: usage.cacheRead ?? 0 },
      completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    };
    frames.push(
      { text: chunk({}, reply.stopReason ?? (call > 0 ? 'tool_calls' : 'stop')), delta: false },
      { text: sse({ ...head, choices: [], usage: counted }), delta: false },
      { text: 'data: [DONE]\n\n', delta: false },
    );
    return frames;
  },
  errorFrame: (error) => sse(openAIError(error)),
  errorBody: (error) => JSON.stringify(openAIError(error)),
  malformedFrame: 'data: {"id": "broken", "choices": [\n\n',
};

/** OpenAI's error object, the same in both of its formats. */
export function openAIError(error: ReplyError): { error: Json } {
  return {
    error: { message: error.message, type: error.type ?? 'server_error', param: null, code: error.code ?? null },
  };
}

import {
  type Api,
  type AssistantMessage,
  createAssistantMessageEventStream,
  createProvider,
  type Message,
  type Model,
  type Provider,
  type SimpleStreamOptions,
  type ToolCall,
  type TranscriptContext,
} from '@earendil-works/pi-ai';

export const kilobyte = 'x'.repeat(1_000);

/** A request as the benchmark's model sees it. Nothing is copied: a long context costs the model nothing. */
export interface ModelRequest {
  messages: readonly Message[];
  sessionId: string;
  signal: AbortSignal | undefined;
}

/** Text in pieces, each streamed as one delta when it comes, then at most one tool call. */
export interface ModelReply {
  text: Iterable<string> | AsyncIterable<string>;
  call?: { name: string; args: Record<string, number> };
}

const usage = {
  input: 250,
  output: 250,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 500,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** The prompt that asks the instant model for so many turns, a kilobyte long. */
export function promptFor(turns: number): string {
  return `${turns} turns, please. ${kilobyte}`.slice(0, 1_000);
}

/**
 * Replies at once: a kilobyte and a call of `echo` in each turn, until the prompt has had the turns that it asks for.
 * What is measured with it is all ours.
 */
export function instantReply({ messages }: ModelRequest): ModelReply {
  const prompt = messages.findLastIndex((message) => message.role === 'user');
  const turns = Number.parseInt(promptText(messages[prompt]), 10) || 1;
  const done = messages.slice(prompt).filter((message) => message.role === 'assistant').length;
  return done < turns - 1 ? { text: [kilobyte], call: { name: 'echo', args: { n: done } } } : { text: ['done'] };
}

/** A provider of the one model "bench/main". */
export function instantModel(reply: (request: ModelRequest) => ModelReply = instantReply): Provider {
  const begin = (model: Model<Api>, context: TranscriptContext, options: SimpleStreamOptions = {}) => {
    const stream = createAssistantMessageEventStream();
    const { sessionId = '', signal } = options;
    const message = emptyMessage(model);
    const finish = async () => {
      const messages = context.messages.filter((each): each is Message => each.role !== 'system');
      await options.onPayload?.({ messages }, model);
      await play(reply({ messages, sessionId, signal }), message, stream);
    };
    finish().catch((error: unknown) => {
      const reason = signal?.aborted ? 'aborted' : 'error';
      const failed = { ...message, stopReason: reason, errorMessage: String(error) } as const;
      stream.push({ type: 'error', reason, error: failed });
      stream.end(failed);
    });
    return stream;
  };
  return createProvider({
    id: 'bench',
    auth: { apiKey: { name: 'none', resolve: async () => ({ auth: { apiKey: 'none' }, source: 'no key needed' }) } },
    models: [modelFacts],
    api: { stream: begin, streamSimple: begin },
  });
}

export const modelRef = 'bench/main';

const modelFacts: Model<Api> = {
  id: 'main',
  name: 'main',
  api: 'bench',
  provider: 'bench',
  baseUrl: '',
  reasoning: false,
  input: ['text'],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 10_000_000,
  maxTokens: 100_000,
};

async function play(
  reply: ModelReply,
  message: AssistantMessage,
  stream: ReturnType<typeof createAssistantMessageEventStream>,
): Promise<void> {
  stream.push({ type: 'start', partial: message });
  const block = { type: 'text' as const, text: '' };
  message.content.push(block);
  stream.push({ type: 'text_start', contentIndex: 0, partial: message });
  for await (const delta of reply.text) {
    block.text += delta;
    stream.push({ type: 'text_delta', contentIndex: 0, delta, partial: message });
  }
  stream.push({ type: 'text_end', contentIndex: 0, content: block.text, partial: message });
  if (reply.call !== undefined) {
    const { name, args } = reply.call;
    const toolCall: ToolCall = { type: 'toolCall', id: `call-${args.n}`, name, arguments: args };
    message.content.push(toolCall);
    stream.push({ type: 'toolcall_start', contentIndex: 1, partial: message });
    stream.push({ type: 'toolcall_delta', contentIndex: 1, delta: JSON.stringify(args), partial: message });
    stream.push({ type: 'toolcall_end', contentIndex: 1, toolCall, partial: message });
  }
  const reason = reply.call === undefined ? 'stop' : 'toolUse';
  message.stopReason = reason;
  stream.push({ type: 'done', reason, message });
  stream.end(message);
}

function emptyMessage(model: Model<Api>): AssistantMessage {
  const { api, provider, id } = model;
  const timestamp = Date.now();
  return { role: 'assistant', content: [], api, provider, model: id, usage, stopReason: 'pending', timestamp };
}

function promptText(message: Message | undefined): string {
  if (message === undefined) return '';
  const { content } = message;
  if (typeof content === 'string') return content;
  return content[0]?.type === 'text' ? content[0].text : '';
}

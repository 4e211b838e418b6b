import { setTimeout as delay } from 'node:timers/promises';
import {
  type AssistantMessage,
  type AssistantMessageEventStream,
  createAssistantMessageEventStream,
  createProvider,
  type Message,
  type Model,
  type Provider,
  type ToolCall,
} from '@earendil-works/pi-ai';
import { type Decision, decide } from './offline/decide.ts';
import { textOf } from './offline/journal.ts';

export const offlineModelRef = 'offline/surveyor';

export interface OfflineProviderOptions {
  /** Milliseconds between two pieces of a reply, as a network would have them. Default: 15. */
  pieceDelayMs?: number;
}

const textPiece = 12;
/** Arguments come in larger pieces, or a report would take as long as it takes to read it. */
const argumentPiece = 200;

type Request = Parameters<Provider['streamSimple']>;

/**
 * A pi-ai provider without network and key, which is what the demo and the tests run on. Its replies follow from the
 * transcript alone (see `decide`), are streamed in pieces and stop at an abort like any other provider's. Token figures
 * are estimates of a fourth of the characters; they cost nothing.
 */
export function offlineProvider({ pieceDelayMs = 15 }: OfflineProviderOptions = {}): Provider {
  const model: Model<string> = {
    id: 'surveyor',
    name: 'Offline surveyor',
    api: 'everturn-offline-surveyor',
    provider: 'offline',
    baseUrl: 'offline:',
    reasoning: false,
    input: ['text'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 200_000,
    maxTokens: 64_000,
  };
  const stream = (...[asked, context, options]: Request): AssistantMessageEventStream => {
    const events = createAssistantMessageEventStream();
    const reply = new Reply(events, asked, context.messages, pieceDelayMs, options?.signal);
    // A reader that comes a moment later still gets every event: the stream keeps them.
    void reply.send(() => decide(context.messages));
    return events;
  };
  return createProvider({
    id: 'offline',
    name: 'Offline',
    auth: { apiKey: { name: 'none', resolve: async () => ({ auth: {}, source: 'no key needed' }) } },
    models: [model],
    api: { stream, streamSimple: stream },
  });
}

/** One reply on its way out. Its partial message is the one that an abort leaves behind. */
class Reply {
  readonly #events: AssistantMessageEventStream;
  readonly #pieceDelayMs: number;
  readonly #signal: AbortSignal | undefined;
  readonly #message: AssistantMessage;
  /** Makes the ids of tool calls: the same after a retry, another in the next turn. */
  readonly #position: number;

  constructor(
    events: AssistantMessageEventStream,
    model: Request[0],
    messages: readonly Message[],
    pieceDelayMs: number,
    signal: AbortSignal | undefined,
  ) {
    this.#events = events;
    this.#pieceDelayMs = pieceDelayMs;
    this.#signal = signal;
    this.#position = messages.length;
    const input = messages.reduce((sum, message) => sum + tokens(promptText(message)), 0);
    this.#message = {
      role: 'assistant',
      content: [],
      api: model.api,
      provider: model.provider,
      model: model.id,
      usage: {
        input,
        output: 0,
        cacheRead: 0,
        cacheWrite: 0,
        totalTokens: input,
        cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
      },
      stopReason: 'pending',
      timestamp: Date.now(),
    };
  }

  /** Never rejects: what goes wrong is the last event, as the protocol of pi-ai has it. */
  async send(think: () => Decision): Promise<void> {
    try {
      this.#signal?.throwIfAborted();
      const { text, calls } = think();
      this.#events.push({ type: 'start', partial: this.#message });
      await this.#sendText(text);
      for (const { name, args } of calls) await this.#sendCall(name, args);
      const reason = calls.length > 0 ? 'toolUse' : 'stop';
      this.#message.stopReason = reason;
      this.#events.push({ type: 'done', reason, message: this.#message });
    } catch (error) {
      const reason = this.#signal?.aborted === true ? 'aborted' : 'error';
      this.#message.stopReason = reason;
      this.#message.errorMessage = reason === 'aborted' ? 'Request was aborted' : String(error);
      this.#events.push({ type: 'error', reason, error: this.#message });
    }
    this.#events.end(this.#message);
  }

  async #sendText(text: string): Promise<void> {
    const block = { type: 'text' as const, text: '' };
    const contentIndex = this.#message.content.push(block) - 1;
    this.#events.push({ type: 'text_start', contentIndex, partial: this.#message });
    for await (const delta of this.#pieces(text, textPiece)) {
      block.text += delta;
      this.#events.push({ type: 'text_delta', contentIndex, delta, partial: this.#message });
    }
    this.#events.push({ type: 'text_end', contentIndex, content: text, partial: this.#message });
  }

  async #sendCall(name: string, args: ToolCall['arguments']): Promise<void> {
    const contentIndex = this.#message.content.length;
    const block: ToolCall = { type: 'toolCall', id: `call_${this.#position}_${contentIndex}`, name, arguments: {} };
    this.#message.content.push(block);
    this.#events.push({ type: 'toolcall_start', contentIndex, partial: this.#message });
    for await (const delta of this.#pieces(JSON.stringify(args), argumentPiece)) {
      this.#events.push({ type: 'toolcall_delta', contentIndex, delta, partial: this.#message });
    }
    block.arguments = args;
    this.#events.push({ type: 'toolcall_end', contentIndex, toolCall: block, partial: this.#message });
  }

  async *#pieces(text: string, size: number): AsyncGenerator<string> {
    for (let start = 0; start < text.length; start += size) {
      if (this.#pieceDelayMs > 0)
        await delay(this.#pieceDelayMs, undefined, this.#signal ? { signal: this.#signal } : {});
      this.#signal?.throwIfAborted();
      const piece = text.slice(start, start + size);
      const { usage } = this.#message;
      usage.output += tokens(piece);
      usage.totalTokens = usage.input + usage.output;
      yield piece;
    }
  }
}

function tokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** What of a message the estimate counts. */
function promptText(message: Message): string {
  if (message.role !== 'assistant' && message.role !== 'system') return textOf(message);
  if (message.role === 'assistant') {
    return (
      message.content.map((block) => (block.type === 'toolCall' ? JSON.stringify(block.arguments) : '')).join('') +
      textOf(message)
    );
  }
  return textOf(message) + JSON.stringify(message.toolsAdded ?? []);
}

import type { ResultAnswer } from './moves.ts';
import type { Play } from './play.ts';

interface StartEvent {
  prompt: string;
  images?: object[];
  systemPrompt: string;
  resources: object;
}
interface ToolEvent {
  toolCallId: string;
  toolName: string;
  input: Record<string, unknown>;
}
interface ResultEvent extends ToolEvent {
  content: unknown[];
  details: unknown;
  isError: boolean;
  usage?: object;
}

/**
 * Difference 43: of several handlers pi 0.83.0 takes the last answer whole, Everturn combines them. So on pi's side the
 * handlers of one event are one handler that combines as the document's rules say, written here anew. A single handler is
 * handed through as it is.
 */
export function combine(play: Play) {
  return {
    async start(handlers: readonly number[], event: StartEvent) {
      const messages: object[] = [];
      let { systemPrompt } = event;
      for (const handler of handlers) {
        const answer = await play.start(handler, { ...event, systemPrompt });
        if (handlers.length === 1) return answer;
        messages.push(...(answer?.messages ?? []));
        systemPrompt = answer?.systemPrompt ?? systemPrompt;
      }
      return { messages, ...(systemPrompt === event.systemPrompt ? {} : { systemPrompt }) };
    },

    async context(handlers: readonly number[], original: object[]) {
      let messages = original;
      for (const handler of handlers) {
        const answer = await play.context('context', handler, messages);
        if (handlers.length === 1) return answer === undefined ? undefined : { messages: answer };
        messages = answer ?? messages;
      }
      return { messages };
    },

    async gate(handlers: readonly number[], event: ToolEvent) {
      const seen = { toolName: event.toolName };
      for (const handler of handlers) {
        const answer = await play.gate('tool_call', handler, event.toolCallId, event.input, seen);
        if (handlers.length === 1 || answer?.block) return answer;
      }
      return undefined;
    },

    async result(handlers: readonly number[], event: ResultEvent) {
      const { toolName, input, content, details, isError, usage, toolCallId } = event;
      let patched: ResultAnswer = {};
      for (const handler of handlers) {
        const seen = { toolName, input, content, details, isError, usage, ...withoutTerminate(patched) };
        const answer = await play.result('tool_result', handler, toolCallId, seen);
        if (handlers.length === 1) return answer;
        patched = { ...patched, ...answer };
      }
      return patched;
    },
  };
}

/** The event does not tell of it. */
function withoutTerminate({ terminate: _, ...rest }: ResultAnswer): ResultAnswer {
  return rest;
}

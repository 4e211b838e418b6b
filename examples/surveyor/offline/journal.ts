import type { JsonObject, Message } from '@earendil-works/pi-ai';

/** A tool call of the transcript with what came of it. */
export interface CallRecord {
  name: string;
  args: JsonObject;
  /** What the model was told, once it was. */
  text: string | undefined;
  isError: boolean;
  /** Index of the message that made the call. */
  position: number;
}

export interface UserRecord {
  text: string;
  position: number;
}

/** A transcript as the offline model reads it. It knows nothing else, so equal transcripts give equal decisions. */
export interface Journal {
  users: UserRecord[];
  calls: CallRecord[];
  /** Index of the last answer that called no tool, or of an aborted one: what was asked before it is done. -1: none. */
  lastAnswer: number;
  /** Names of the tools that may be called. */
  tools: ReadonlySet<string>;
  length: number;
}

export function readJournal(messages: readonly Message[]): Journal {
  const users: UserRecord[] = [];
  const calls: CallRecord[] = [];
  const byId = new Map<string, CallRecord>();
  const tools = new Set<string>();
  let lastAnswer = -1;
  for (const [position, message] of messages.entries()) {
    if (message.role === 'system') {
      for (const tool of message.toolsRemoved ?? []) tools.delete(tool.name);
      for (const tool of message.toolsAdded ?? []) tools.add(tool.name);
    } else if (message.role === 'user') {
      users.push({ text: textOf(message), position });
    } else if (message.role === 'toolResult') {
      const call = byId.get(message.toolCallId);
      if (call !== undefined) {
        call.text = textOf(message);
        call.isError = message.isError;
      }
    } else if (message.stopReason === 'stop' || message.stopReason === 'aborted') {
      lastAnswer = position;
    } else {
      for (const block of message.content) {
        if (block.type !== 'toolCall') continue;
        const call = { name: block.name, args: block.arguments, text: undefined, isError: false, position };
        calls.push(call);
        byId.set(block.id, call);
      }
    }
  }
  return { users, calls, lastAnswer, tools, length: messages.length };
}

export function textOf(message: Message): string {
  if (typeof message.content === 'string') return message.content;
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
}

import type { LogEvent, LogRecord } from '../../src/common/events.ts';
import { type AgentMessage, type Message, textOf, toolCallsOf } from '../../src/common/messages.ts';
import type { Store } from '../../src/store/types.ts';

const pageSize = 1_000;

/** The messages on the path to the session's leaf, oldest first. */
export async function transcript(store: Store, sessionId: string): Promise<AgentMessage[]> {
  const session = await store.readSession(sessionId);
  if (!session?.leaf) return [];
  const { entries } = await store.readPath(sessionId, session.leaf);
  return entries.flatMap((entry) => (entry.type === 'message' ? [entry.message] : []));
}

export async function readWholeLog(store: Store, sessionId: string): Promise<LogRecord[]> {
  const all: LogRecord[] = [];
  for (;;) {
    const page = await store.readLog(sessionId, all.length, pageSize);
    all.push(...page);
    if (page.length < pageSize) return all;
  }
}

/** Events that only tell how something went: they may come once more after a crash, and stand in no order. */
const notes: readonly string[] = ['hook', 'after_provider_response'];

/**
 * The log in words, one for each record but notes: the event's type, or the role of the message that is appended. With
 * `runId` only the records of that run.
 */
export async function logWords(store: Store, sessionId: string, runId?: string): Promise<string[]> {
  const log = await readWholeLog(store, sessionId);
  const own = log.filter((record) => runId === undefined || record.runId === runId);
  return own.flatMap(({ body }) => {
    if (body.kind === 'event') return notes.includes(body.event.type) ? [] : [wordOf(body.event)];
    return body.entry.type === 'message' ? [body.entry.message.role] : [body.entry.type];
  });
}

function wordOf(event: LogEvent): string {
  if (event.type === 'tool_execution_start') return `start ${event.toolName}`;
  if (event.type === 'tool_execution_end') return `end ${event.toolName}: ${event.outcome}`;
  if (event.type === 'agent_end') return `agent_end: ${event.status}`;
  return event.type;
}

/** Messages in words: "user: Hello", "assistant: text +tool", "toolResult tool: text", errors marked by "!". */
export function words(messages: readonly (AgentMessage | Message)[]): string[] {
  return messages.map((message) => {
    if (message.role === 'assistant') {
      const calls = toolCallsOf(message as never).map((call) => ` +${call.name}`);
      return `assistant: ${textOf(message)}${calls.join('')}`;
    }
    if (message.role === 'toolResult')
      return `result of ${message.toolName}${message.isError ? ' (error)' : ''}: ${textOf(message)}`;
    return `${message.role}: ${textOf(message)}`;
  });
}

import type { NewRecord, ToolOutcome } from '../../common/events.ts';
import type { ToolCall, ToolResultMessage } from '../../common/messages.ts';
import type { SettledCall } from '../../store/types.ts';

/** pi's immediate result: one text, empty details. */
export function textOutcome(text: string): ToolOutcome {
  return { content: [{ type: 'text', text }], details: {} };
}

/** What the model is told of a call that was closed without its tool: `entered` says that a worker was lost in it. */
export function notEnteredText(reason: string, toolName: string, entered: boolean): string {
  return entered ? `${reason}, outcome unknown: ${toolName} had started.` : reason;
}

export function startRecord(entryId: string, index: number, call: ToolCall): NewRecord {
  return {
    kind: 'event',
    key: `${entryId}/${index}/start`,
    event: { type: 'tool_execution_start', toolCallId: call.id, toolName: call.name, args: call.arguments },
  };
}

/** The message of the transcript that a settled call becomes: the store makes the same. */
export function toResultMessage(
  call: { id: string; name: string },
  settled: Pick<SettledCall, 'result' | 'isError' | 'timestamp'>,
): ToolResultMessage {
  const { content, details, usage } = settled.result;
  return {
    role: 'toolResult',
    toolCallId: call.id,
    toolName: call.name,
    content,
    ...(details === undefined ? {} : { details }),
    ...(usage === undefined ? {} : { usage }),
    isError: settled.isError,
    timestamp: settled.timestamp,
  } as ToolResultMessage;
}

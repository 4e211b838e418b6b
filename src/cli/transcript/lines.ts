import type { SessionTreeEntry } from '../../common/entries.ts';
import type { SessionEvent, ToolOutcomeKind } from '../../common/events.ts';
import { type AgentMessage, textOf } from '../../common/messages.ts';
import type { UsageTotals } from '../../common/usage.ts';
import { harmless, type Ink, oneLine } from '../ink.ts';

export interface LineStyle {
  ink: Ink;
  /** Characters after which arguments and results are cut. */
  width: number;
}

type EventOf<Type extends SessionEvent['type']> = Extract<SessionEvent, { type: Type }>;

/**
 * The lines that one event stands for by itself: the same event gives the same lines. Replies of the model are the
 * transcript's, which shows them as they come.
 */
export function linesOf(event: SessionEvent, style: LineStyle): string[] {
  const { ink, width } = style;
  switch (event.type) {
    case 'session_open':
      return event.epoch === 1 ? [] : [ink.dim(`session opened again, epoch ${event.epoch}`)];
    case 'agent_start':
      return [ink.bold(`run ${event.runId ?? ''}`.trimEnd())];
    case 'turn_start':
      return [ink.dim(`turn ${(event.turn ?? 0) + 1}`)];
    case 'message_end':
      return messageLines(event.message, style);
    case 'tool_execution_start':
      return [`  ${ink.cyan('→')} ${event.toolName} ${shortArguments(event.args, width)}`.trimEnd()];
    case 'tool_execution_end':
      return [toolEnd(event, style)];
    case 'abort':
      return abortLines(event, style);
    case 'signal_rejected':
      return [ink.yellow(`a ${event.signal} signal was refused: ${oneLine(event.reason, width * 2)}`)];
    case 'entry':
      return entryLines(event.entry, style);
    case 'agent_end':
      return [runEnd(event, style)];
    default:
      return [];
  }
}

/** Tokens and cost in a few words. */
export function usageText({ totalTokens, cost }: UsageTotals): string {
  const money = cost > 0 ? `, $${cost.toFixed(cost < 0.1 ? 4 : 2)}` : '';
  return `${totalTokens.toLocaleString('en-US')} tokens${money}`;
}

function messageLines(message: AgentMessage, { ink }: LineStyle): string[] {
  // Results of tools are told by the end of their calls, replies by the transcript.
  if (message.role === 'assistant' || message.role === 'toolResult') return [];
  const images = Array.isArray(message.content) ? message.content.filter((block) => block.type === 'image').length : 0;
  const text = `${harmless(textOf(message))}${images === 0 ? '' : ` [${images} image${images === 1 ? '' : 's'}]`}`;
  return [`${ink.green(message.role)} ${text.replaceAll('\n', '\n     ')}`];
}

const marks: Record<ToolOutcomeKind, string> = {
  completed: '',
  failed: '',
  not_found: 'no such tool: ',
  invalid_arguments: 'bad arguments: ',
  blocked: 'blocked: ',
  aborted: 'aborted: ',
  truncated: 'cut off: ',
  unknown: 'outcome unknown: ',
};

function toolEnd(
  { toolName, result, isError, outcome }: EventOf<'tool_execution_end'>,
  { ink, width }: LineStyle,
): string {
  const text = textOf(result).trimEnd();
  const [first = '', ...more] = text.split('\n');
  const images = result.content.filter((block) => block.type === 'image').length;
  const notes = [
    ...(more.length > 0 ? [`${more.length + 1} lines`] : []),
    ...(images > 0 ? [`${images} image${images === 1 ? '' : 's'}`] : []),
  ];
  const mark = outcome === 'unknown' ? ink.yellow('?') : isError ? ink.red('✗') : ink.cyan('←');
  const tail = notes.length === 0 ? '' : ink.dim(` (${notes.join(', ')})`);
  return `  ${mark} ${toolName} ${marks[outcome]}${oneLine(first, width)}`.trimEnd() + tail;
}

function abortLines({ clearedSteer, clearedFollowUp }: EventOf<'abort'>, { ink, width }: LineStyle): string[] {
  return [...clearedSteer, ...clearedFollowUp].map(({ message }) =>
    ink.yellow(`not delivered: “${oneLine(textOf(message), width)}”`),
  );
}

function entryLines(entry: SessionTreeEntry, { ink }: LineStyle): string[] {
  switch (entry.type) {
    case 'model_change':
      return [ink.dim(`model is now ${entry.provider}/${entry.modelId}`)];
    case 'thinking_level_change':
      return [ink.dim(`thinking level is now ${entry.thinkingLevel}`)];
    case 'active_tools_change':
      return [ink.dim(`active tools are now ${entry.activeToolNames.join(', ') || 'none'}`)];
    case 'compaction':
      return [ink.dim(`context compacted, it had ${entry.tokensBefore.toLocaleString('en-US')} tokens`)];
    default:
      return [];
  }
}

function runEnd({ status, error }: EventOf<'agent_end'>, { ink, width }: LineStyle): string {
  if (status === 'done') return ink.bold('run done');
  const why = error === undefined ? '' : `: ${oneLine(error.message, width * 5)} (${error.code})`;
  return status === 'error' ? ink.red(`run ended in an error${why}`) : ink.yellow(`run ${status}${why}`);
}

/** Arguments of a tool call: the only one bare, several by name, long texts by their length. */
function shortArguments(args: unknown, width: number): string {
  const entries = Object.entries(typeof args === 'object' && args !== null ? args : {});
  const [only] = entries;
  if (entries.length === 1 && typeof only?.[1] === 'string') return oneLine(only[1], width);
  const parts = entries.map(([name, value]) => {
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
    return text.length > width ? `${name}=${oneLine(text, 40)} (${text.length} characters)` : `${name}=${text}`;
  });
  return oneLine(parts.join(' '), width * 2);
}

import type { SessionEvent } from '../common/events.ts';
import { textOf } from '../common/messages.ts';
import { harmless, type Ink, oneLine } from './ink.ts';
import { type LineStyle, linesOf } from './transcript/lines.ts';

type EventOf<Type extends SessionEvent['type']> = Extract<SessionEvent, { type: Type }>;

/**
 * Events of a session as text to be written as it comes. It does no I/O, and keeps only what it needs to go on in the
 * middle of a line: equal events give equal text. When an attempt of a reply is lost, what was shown of it is marked as
 * lost; words of two attempts never stand in one paragraph.
 */
export class Transcript {
  readonly #style: LineStyle;
  /** What of the reply that is being streamed has been shown. */
  #reply: { entryId: string; shown: string } | undefined;
  #lineOpen = false;
  readonly #waiting = { steer: new Set<string>(), followUp: new Set<string>(), nextTurn: new Set<string>() };
  readonly #toolsHeard = new Set<string>();

  /** @param width characters after which arguments and results are cut */
  constructor(ink: Ink, width = 100) {
    this.#style = { ink, width };
  }

  /** Text for one event, perhaps empty. */
  render(event: SessionEvent): string {
    switch (event.type) {
      case 'message_update':
        return this.#streamed(event);
      case 'message_reset':
        return this.#reset(event);
      case 'message_end':
        return event.message.role === 'assistant' ? this.#replyEnd(event) : this.#lines(linesOf(event, this.#style));
      case 'tool_execution_update':
        return this.#toolUpdate(event);
      case 'queue_update':
        return this.#queues(event);
      default:
        return this.#lines(linesOf(event, this.#style));
    }
  }

  /** Ends a line that is open, before something else is written. */
  break(): string {
    const end = this.#lineOpen ? '\n' : '';
    this.#lineOpen = false;
    return end;
  }

  #lines(lines: string[]): string {
    return lines.length === 0 ? '' : `${this.break()}${lines.join('\n')}\n`;
  }

  #streamed({ entryId, delta }: EventOf<'message_update'>): string {
    if (delta.type === 'thinking_start') return this.#lines([this.#style.ink.dim('  thinking …')]);
    if (delta.type === 'text_start' && this.#reply?.entryId === entryId && this.#reply.shown !== '') {
      this.#reply.shown += '\n';
      return this.break();
    }
    if (delta.type !== 'text_delta') return '';
    if (this.#reply?.entryId !== entryId) this.#reply = { entryId, shown: '' };
    this.#reply.shown += delta.delta;
    return this.#words(delta.delta);
  }

  #words(text: string): string {
    const shown = harmless(text);
    if (shown === '') return '';
    const before = this.#lineOpen ? '' : '  ';
    this.#lineOpen = true;
    return before + shown.replaceAll('\n', '\n  ');
  }

  #reset({ entryId, attempt }: EventOf<'message_reset'>): string {
    const lost = this.#reply?.entryId === entryId && this.#reply.shown !== '';
    if (this.#reply?.entryId === entryId) this.#reply = undefined;
    return lost
      ? this.#lines([this.#style.ink.yellow(`  ↺ that reply was lost; attempt ${attempt} begins it again`)])
      : '';
  }

  /** Live words may have been missed, or differ from what was kept in the end: what is stored is shown in full. */
  #replyEnd({ entryId, message }: EventOf<'message_end'>): string {
    const text = textOf(message);
    const shown = this.#reply?.entryId === entryId ? this.#reply.shown : '';
    this.#reply = undefined;
    const rest = text.startsWith(shown) ? this.#words(text.slice(shown.length)) : this.break() + this.#words(text);
    const end = this.break();
    const { stopReason, errorMessage } = message as { stopReason?: string; errorMessage?: string };
    if (stopReason !== 'error' && stopReason !== 'aborted') return rest + end;
    return rest + end + this.#lines([`  ${this.#style.ink.red(`✗ ${oneLine(errorMessage ?? stopReason, 500)}`)}`]);
  }

  /** The first sign of life of a call alone: the rest comes with its result. */
  #toolUpdate({ toolCallId, toolName, partialResult }: EventOf<'tool_execution_update'>): string {
    if (this.#toolsHeard.has(toolCallId)) return '';
    const last =
      textOf((partialResult ?? {}) as { content?: unknown })
        .trimEnd()
        .split('\n')
        .at(-1) ?? '';
    if (last === '') return '';
    this.#toolsHeard.add(toolCallId);
    return this.#lines([this.#style.ink.dim(`  · ${toolName} ${oneLine(last, this.#style.width)}`)]);
  }

  /** What has come to wait; what has left a queue shows as a user message. */
  #queues(event: EventOf<'queue_update'>): string {
    const { ink, width } = this.#style;
    const labels = { steer: 'steering waits', followUp: 'follow-up waits', nextTurn: 'for the next prompt' } as const;
    const lines: string[] = [];
    for (const queue of ['steer', 'followUp', 'nextTurn'] as const) {
      for (const { id, message } of event[queue]) {
        if (this.#waiting[queue].has(id)) continue;
        lines.push(ink.dim(`  ${labels[queue]}: “${oneLine(textOf(message ?? {}), width)}”`));
      }
      this.#waiting[queue] = new Set(event[queue].map(({ id }) => id));
    }
    return this.#lines(lines);
  }
}

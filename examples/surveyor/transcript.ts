import type { SessionEvent } from 'everturn';
import { Ink } from './transcript/ink.ts';
import { oneLine, quote, shortArguments, textOf } from './transcript/short.ts';

export interface TranscriptOptions {
  /** Colours, for a terminal. Default: false. */
  colour?: boolean;
  /** Characters after which arguments and results are cut. Default: 100. */
  width?: number;
}

type EventOf<Type extends SessionEvent['type']> = Extract<SessionEvent, { type: Type }>;

/**
 * Turns the events of a session into text to be written as it comes: streamed words appear one by one. It does no I/O
 * and keeps only what it needs to go on in the middle of a line. When an attempt of a reply is lost, what was shown of
 * it is marked as lost; words of two attempts never stand in one paragraph.
 */
export class Transcript {
  readonly #ink: Ink;
  readonly #width: number;
  /** What of the reply that is being streamed has been shown. */
  #reply: { entryId: string; shown: string } | undefined;
  #lineOpen = false;
  readonly #updatedCalls = new Set<string>();
  /** Queue of each message that waits or waited, by the id of the entry that it becomes. */
  readonly #queues = new Map<string, string>();

  constructor({ colour = false, width = 100 }: TranscriptOptions = {}) {
    this.#ink = new Ink(colour);
    this.#width = width;
  }

  /** Text for one event, perhaps empty. */
  render(event: SessionEvent): string {
    switch (event.type) {
      case 'session_open':
        return this.#line(this.#ink.dim(`session opened, agent ${event.agent}, epoch ${event.epoch}`));
      case 'agent_start':
        return this.#line(this.#ink.bold('run started'));
      case 'turn_start':
        return this.#line(this.#ink.dim(`turn ${(event.turn ?? 0) + 1}`));
      case 'message_update':
        return this.#streamed(event);
      case 'message_reset':
        return this.#reset(event);
      case 'message_end':
        return this.#message(event);
      case 'tool_execution_start':
        return this.#line(`  ${this.#ink.cyan('→')} ${event.toolName} ${shortArguments(event.args, this.#width)}`);
      case 'tool_execution_update':
        return this.#toolUpdate(event);
      case 'tool_execution_end':
        return this.#toolEnd(event);
      case 'queue_update':
        return this.#queueUpdate(event);
      case 'abort':
        return this.#line(this.#ink.yellow('abort: nothing more is started'));
      case 'signal_rejected':
        return this.#line(this.#ink.yellow(`signal ${event.signal} was refused: ${event.reason}`));
      case 'agent_end':
        return this.#runEnd(event);
      default:
        return '';
    }
  }

  /** A line of the caller's own, which does not break into a streamed one. */
  note(text: string): string {
    return this.#line(text);
  }

  #line(text: string): string {
    return `${this.#endLine()}${text}\n`;
  }

  #endLine(): string {
    const end = this.#lineOpen ? '\n' : '';
    this.#lineOpen = false;
    return end;
  }

  #streamed({ entryId, delta }: EventOf<'message_update'>): string {
    if (delta.type !== 'text_delta') return '';
    if (this.#reply?.entryId !== entryId) this.#reply = { entryId, shown: '' };
    this.#reply.shown += delta.delta;
    return this.#words(delta.delta);
  }

  #words(text: string): string {
    if (text === '') return '';
    const before = this.#lineOpen ? '' : '  ';
    this.#lineOpen = true;
    return before + text.replaceAll('\n', '\n  ');
  }

  #reset({ entryId, attempt }: EventOf<'message_reset'>): string {
    const lost = this.#reply?.entryId === entryId && this.#reply.shown !== '';
    if (this.#reply?.entryId === entryId) this.#reply = undefined;
    if (!lost) return '';
    return this.#line(
      `  ${this.#ink.yellow(`↺ that reply was lost with its worker; attempt ${attempt} begins it again`)}`,
    );
  }

  #message({ entryId, message }: EventOf<'message_end'>): string {
    const text = textOf(message);
    if (message.role === 'user') return this.#userMessage(entryId, text);
    if (message.role !== 'assistant') return '';
    const shown = this.#reply?.entryId === entryId ? this.#reply.shown : '';
    this.#reply = undefined;
    // Live words may have been missed: what is stored is shown in full.
    const rest = text.startsWith(shown) ? this.#words(text.slice(shown.length)) : this.#endLine() + this.#words(text);
    const end = this.#endLine();
    const failed = message.stopReason === 'error' || message.stopReason === 'aborted';
    const failure = failed ? this.#line(`  ${this.#ink.red(`✗ ${message.errorMessage ?? message.stopReason}`)}`) : '';
    return rest + end + failure;
  }

  #userMessage(entryId: string, text: string): string {
    const queue = this.#queues.get(entryId);
    const who = queue === undefined ? 'user' : `user (${queue})`;
    return this.#line(`${this.#ink.green(who)} ${text.replaceAll('\n', '\n     ')}`);
  }

  /** The first sign of life alone: the rest comes with the result. */
  #toolUpdate({ toolCallId, toolName, partialResult }: EventOf<'tool_execution_update'>): string {
    if (this.#updatedCalls.has(toolCallId)) return '';
    this.#updatedCalls.add(toolCallId);
    const last = textOf(partialResult).trimEnd().split('\n').at(-1) ?? '';
    return last === '' ? '' : this.#line(this.#ink.dim(`  · ${toolName}: ${oneLine(last, this.#width)}`));
  }

  #toolEnd({ toolCallId, toolName, result, isError, outcome }: EventOf<'tool_execution_end'>): string {
    // A sign of life that is read after the end is old news.
    this.#updatedCalls.add(toolCallId);
    const text = textOf(result).trimEnd();
    const lines = text.split('\n').length;
    const more = lines > 1 ? this.#ink.dim(` (${lines} lines)`) : '';
    const mark = outcome === 'unknown' ? this.#ink.yellow('?') : isError ? this.#ink.red('✗') : this.#ink.cyan('←');
    return this.#line(`  ${mark} ${toolName} ${oneLine(text.split('\n')[0] ?? '', this.#width)}${more}`);
  }

  /** What has come to wait, not what has left a queue: that shows as a user message. */
  #queueUpdate({ steer, followUp, nextTurn }: EventOf<'queue_update'>): string {
    let text = '';
    for (const [name, queue] of Object.entries({ steer, followUp, nextTurn })) {
      for (const { id, message } of queue) {
        if (this.#queues.has(id)) continue;
        this.#queues.set(id, name);
        text += this.#line(this.#ink.dim(`  ${name} waits: ${quote(textOf(message), this.#width)}`));
      }
    }
    return text;
  }

  #runEnd({ status, error }: EventOf<'agent_end'>): string {
    if (status === 'done') return this.#line(this.#ink.bold('run done'));
    const why = error === undefined ? '' : `: ${error.message} (${error.code})`;
    return this.#line(this.#ink.red(`run ended, ${status}${why}`));
  }
}

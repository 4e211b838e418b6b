import type {
  LogEvent,
  LogRecord,
  QueuedMessage,
  QueueIds,
  SessionEvent,
  StreamDelta,
  StreamRecord,
} from '../common/events.ts';
import type { AgentMessage, AssistantMessage, ToolCall, ToolResultMessage } from '../common/messages.ts';
import { emptyUsage } from '../common/usage.ts';
import { SettingsView } from './settings-view.ts';

interface Partial {
  attempt: number;
  started: boolean;
  message: AssistantMessage;
  rawArguments: Map<number, string>;
}

/**
 * Turns the records of the log and live deltas into pi's events. Every message has one start and one end, whatever was
 * seen of its stream; deltas of an attempt that a later one replaced are dropped.
 */
export class EventAssembler {
  /** Deltas whose turn the log has not begun yet, as far as it was read. */
  private early: StreamRecord[] = [];
  private readonly open = new Map<string, Partial>();
  private readonly ended = new Set<string>();
  private readonly messages = new Map<string, AgentMessage>();
  private readonly queued = new Map<string, AgentMessage>();
  private runMessages: AgentMessage[] = [];
  /** Calls of the current turn that the log has begun: an update comes between the start and the end of its call. */
  private readonly calls = new Map<string, 'running' | 'ended'>();
  private turn: string | undefined;
  private turnEnded:
    | { place: Pick<SessionEvent, 'offset' | 'runId' | 'turn'>; hadPendingMutations: boolean }
    | undefined;
  private readonly settings = new SettingsView();

  /** Events of the next records of the log, in order. `deltas`: those that were written before the last of them. */
  *push(records: readonly LogRecord[], deltas: readonly StreamRecord[]): Generator<SessionEvent> {
    this.early.push(...deltas);
    for (const record of records) {
      const { body } = record;
      if (body.kind === 'entry' && body.entry.type === 'message') yield* this.live({ entryId: body.entry.id });
      if (body.kind === 'event' && body.event.type === 'tool_execution_end') {
        yield* this.live({ toolCallId: body.event.toolCallId });
      }
      yield* this.record(record);
    }
    yield* this.live();
    if (this.turn === undefined) return;
    // What is left belongs to a turn that the next records begin, or to one that is over.
    this.early = this.early.filter((delta) => !this.ended.has(delta.entryId) && delta.runId !== '');
  }

  /** save_point comes when the changes of settings that waited for the end of the turn are through. */
  private *savePoint(record: LogRecord): Generator<SessionEvent> {
    if (this.turnEnded === undefined) return;
    if (record.body.kind === 'entry' && record.body.entry.type !== 'message') {
      this.turnEnded.hadPendingMutations = true;
      return;
    }
    const { place, hadPendingMutations } = this.turnEnded;
    this.turnEnded = undefined;
    yield { ...place, type: 'save_point', hadPendingMutations };
  }

  private *record(record: LogRecord): Generator<SessionEvent> {
    yield* this.savePoint(record);
    const place = {
      offset: record.offset,
      ...(record.runId === null ? {} : { runId: record.runId }),
      ...(record.turn === null ? {} : { turn: record.turn }),
    };
    if (record.body.kind === 'event') {
      const { event } = record.body;
      yield { ...place, ...this.event(event, record) } as SessionEvent;
      if (event.type === 'turn_end') this.turnEnded = { place, hadPendingMutations: false };
      return;
    }
    const { entry } = record.body;
    if (entry.type !== 'message') {
      yield { ...place, type: 'entry', entry };
      const update = this.settings.update(entry);
      if (update !== undefined) yield { ...place, ...update };
      return;
    }
    const { id, message } = entry;
    this.messages.set(id, message);
    if (record.runId !== null) this.runMessages.push(message);
    if (!this.open.get(id)?.started) yield { ...place, type: 'message_start', entryId: id, message };
    this.open.delete(id);
    this.ended.add(id);
    yield { ...place, type: 'message_end', entryId: id, message };
  }

  private event(event: LogEvent, record: LogRecord): Record<string, unknown> {
    switch (event.type) {
      case 'agent_start':
        this.runMessages = [];
        this.messages.clear();
        // Not at the end of the run before: deltas that could not be written in time may still come.
        this.ended.clear();
        return event;
      case 'turn_start':
        this.turn = `${record.runId}/${record.turn}`;
        this.calls.clear();
        return event;
      case 'tool_execution_start':
        this.calls.set(event.toolCallId, 'running');
        return event;
      case 'tool_execution_end':
        this.calls.set(event.toolCallId, 'ended');
        return event;
      case 'turn_end': {
        const results = event.toolResultIds
          .map((id) => this.messages.get(id))
          .filter((message) => message !== undefined);
        const message = this.messages.get(event.messageId) as AssistantMessage;
        this.messages.clear();
        return { type: 'turn_end', message, toolResults: results as ToolResultMessage[] };
      }
      case 'agent_end':
        return { ...event, messages: this.runMessages };
      case 'queue_update':
        return this.queueUpdate(event);
      default:
        return event;
    }
  }

  private queueUpdate(event: QueueIds & { added: QueuedMessage[] }): Record<string, unknown> {
    for (const { id, message } of event.added) this.queued.set(id, message);
    const contents = (ids: string[]) =>
      ids.flatMap((id) => {
        const message = this.queued.get(id);
        return message === undefined ? [] : [{ id, message }];
      });
    const { steer, followUp, nextTurn } = event;
    const waiting = new Set([...steer, ...followUp, ...nextTurn]);
    const update = {
      type: 'queue_update',
      steer: contents(steer),
      followUp: contents(followUp),
      nextTurn: contents(nextTurn),
    };
    for (const id of this.queued.keys()) if (!waiting.has(id)) this.queued.delete(id);
    return update;
  }

  /** Deltas that may be shown now: of one message, of one call, or of everything that the current turn has open. */
  private *live(only: { entryId?: string; toolCallId?: string } = {}): Generator<SessionEvent> {
    const all = only.entryId === undefined && only.toolCallId === undefined;
    const later: StreamRecord[] = [];
    for (const record of this.early) {
      const { entryId, delta } = record;
      const inTurn = this.turn === undefined || entryId === this.turn || entryId.startsWith(`${this.turn}/`);
      const call = delta.type === 'tool_update' ? delta.toolCallId : undefined;
      // Read from the middle of a turn, the start of a call was not seen.
      const state = call === undefined || this.turn === undefined ? 'running' : this.calls.get(call);
      if (this.ended.has(entryId) || (inTurn && state === 'ended')) continue;
      const wanted = all || (call === undefined ? entryId === only.entryId : call === only.toolCallId);
      if (inTurn && wanted && state === 'running') yield* this.delta(record);
      else later.push(record);
    }
    this.early = later;
  }

  private *delta({ entryId, attempt, delta, runId }: StreamRecord): Generator<SessionEvent> {
    if (delta.type === 'tool_update') {
      const { toolCallId, toolName, partialResult } = delta;
      yield { runId, type: 'tool_execution_update', toolCallId, toolName, partialResult };
      return;
    }
    const known = this.open.get(entryId);
    if (known !== undefined && attempt < known.attempt) return;
    if (known === undefined || attempt > known.attempt) {
      this.open.set(entryId, {
        attempt,
        started: known?.started ?? false,
        message: emptyMessage(),
        rawArguments: new Map(),
      });
      if (known?.started) yield { runId, type: 'message_reset', entryId, attempt };
    }
    const partial = this.open.get(entryId);
    if (partial === undefined || delta.type === 'reset') return;
    if (!partial.started) {
      partial.started = true;
      yield { runId, type: 'message_start', entryId, message: structuredClone(partial.message) };
    }
    apply(partial, delta);
    yield { runId, type: 'message_update', entryId, attempt, delta, message: partial.message };
  }
}

function emptyMessage(): AssistantMessage {
  return {
    role: 'assistant',
    content: [],
    api: '',
    provider: '',
    model: '',
    usage: emptyUsage(),
    stopReason: 'pending',
    timestamp: 0,
  };
}

function apply(partial: Partial, delta: Exclude<StreamDelta, { type: 'reset' | 'tool_update' }>): void {
  const { content } = partial.message;
  const { contentIndex } = delta;
  const block = content[contentIndex];
  switch (delta.type) {
    case 'text_start':
      content[contentIndex] = { type: 'text', text: '' };
      break;
    case 'thinking_start':
      content[contentIndex] = { type: 'thinking', thinking: '' };
      break;
    case 'toolcall_start':
      content[contentIndex] = { type: 'toolCall', id: delta.id, name: delta.name, arguments: {} };
      partial.rawArguments.set(contentIndex, '');
      break;
    case 'text_delta':
      if (block?.type === 'text') block.text += delta.delta;
      break;
    case 'thinking_delta':
      if (block?.type === 'thinking') block.thinking += delta.delta;
      break;
    case 'toolcall_delta':
      partial.rawArguments.set(contentIndex, (partial.rawArguments.get(contentIndex) ?? '') + delta.delta);
      break;
    case 'toolcall_end':
      if (block?.type === 'toolCall') block.arguments = parseArguments(partial.rawArguments.get(contentIndex) ?? '');
      break;
    default:
      break;
  }
}

/** The final message has the arguments that count; these are for display. */
function parseArguments(raw: string): ToolCall['arguments'] {
  try {
    return JSON.parse(raw) as ToolCall['arguments'];
  } catch {
    return {};
  }
}

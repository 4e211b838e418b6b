import type { NewRecord, QueuedMessage } from '../common/events.ts';
import { signalEntryId, signalRunId } from '../common/ids.ts';
import type { AgentMessage } from '../common/messages.ts';
import { nextMessage, nextNumber, type Queues, type RunRequest, type RunState, type SessionState } from './state.ts';

export type QueueName = 'steer' | 'followUp' | 'nextTurn';

/** Accepts a message. From here on it stands in exactly one place: a queue, a run's pending messages, or the log. */
export function enqueue(
  state: SessionState,
  queue: QueueName,
  message: AgentMessage,
  id = signalEntryId(state.chain, nextMessage(state)),
): QueuedMessage {
  const item = { id, message, held: false };
  state.queues[queue].push(item);
  state.unlogged.push({ id: item.id, message });
  noteQueues(state);
  return item;
}

/** Takes what one drain takes. The mode is read now, so a change of mode counts for messages that wait already. */
export function drain(state: SessionState, queue: 'steer' | 'followUp'): QueuedMessage[] {
  const mode = queue === 'steer' ? state.queues.steeringMode : state.queues.followUpMode;
  const items = state.queues[queue].splice(0, mode === 'all' ? Number.POSITIVE_INFINITY : 1);
  if (items.length > 0) noteQueues(state);
  return items.map(toMessage);
}

/** The messages for the next prompt, all of them, as in pi. */
function drainNextTurn(state: SessionState): QueuedMessage[] {
  const items = state.queues.nextTurn.splice(0);
  if (items.length > 0) noteQueues(state);
  return items.map(toMessage);
}

/** Messages that a run took and could not use go back to the front. @returns whether there were any */
export function giveBack(state: SessionState, messages: Partial<Record<QueueName, readonly QueuedMessage[]>>): boolean {
  const given = Object.entries(messages).filter(([, items]) => items.length > 0) as [QueueName, QueuedMessage[]][];
  for (const [queue, items] of given) {
    state.queues[queue].unshift(...items.map((message) => ({ ...message, held: false })));
  }
  if (given.length > 0) noteQueues(state);
  return given.length > 0;
}

/** What abort takes: steering and follow-ups. Messages for the next turn stay. */
export function clearQueues(state: SessionState): { steer: QueuedMessage[]; followUp: QueuedMessage[] } {
  const cleared = {
    steer: state.queues.steer.splice(0).map(toMessage),
    followUp: state.queues.followUp.splice(0).map(toMessage),
  };
  noteQueues(state);
  return cleared;
}

/** The first that says so, a signal, a control record or a cancelled workflow, takes what waits out of the queues. */
export function beginAbort(state: SessionState, run: RunState): void {
  if (run.aborting) return;
  run.aborting = true;
  run.cleared = clearQueues(state);
}

/** A run has decided to stop: what waits now waits for the next run. What comes later opens one. */
export function holdQueues(queues: Queues): void {
  for (const item of [...queues.steer, ...queues.followUp]) item.held = true;
}

export function hasQueued(queues: Queues): boolean {
  return queues.steer.length + queues.followUp.length + queues.nextTurn.length > 0;
}

/** The next run: a prompt that was accepted, or the messages that reached an idle session. */
export function takeRunRequest(state: SessionState): RunRequest | undefined {
  const request = state.waiting.shift();
  if (request !== undefined) return { ...request, messages: [...drainNextTurn(state), ...request.messages] };
  if (!hasUnheld(state.queues)) return undefined;
  const queued = drainNextTurn(state);
  const steering = drain(state, 'steer');
  const messages = steering.length > 0 ? steering : drain(state, 'followUp');
  const [opener] = messages;
  if (opener === undefined) throw new Error('a queue that has messages gave none');
  const runId = signalRunId(opener.id);
  return { runId, token: runId, messages: [...queued, ...messages] };
}

export function hasRunRequest(state: SessionState): boolean {
  return state.waiting.length > 0 || hasUnheld(state.queues);
}

function hasUnheld(queues: Queues): boolean {
  return [...queues.steer, ...queues.followUp].some((item) => !item.held);
}

/** Leaves word for readers of the log. The text of each message is in the log once, with the first update that has it. */
export function noteQueues(state: SessionState): void {
  const ids = (items: QueuedMessage[]) => items.map((item) => item.id);
  const { steer, followUp, nextTurn } = state.queues;
  const record: NewRecord = {
    kind: 'event',
    key: `queue/${state.chain}/${nextNumber(state)}`,
    event: {
      type: 'queue_update',
      steer: ids(steer),
      followUp: ids(followUp),
      nextTurn: ids(nextTurn),
      added: state.unlogged.splice(0),
    },
  };
  state.events.push(record);
}

function toMessage({ id, message }: QueuedMessage): QueuedMessage {
  return { id, message };
}

import type { NewEntry } from '../common/entries.ts';
import { keyOf, type NewRecord, type QueuedMessage } from '../common/events.ts';
import { promptEntryId, signalEntryId, signalRunId } from '../common/ids.ts';
import { giveBack, noteQueues } from './queues.ts';
import { nextMessage, type RunState, type SessionState } from './state.ts';

/**
 * What an effect did not write, since it, or its whole run, was in the log already (`workflow reset` and repeated prompts
 * bring that about), goes with later effects. A message waits where the run had found it: before the one that opened the
 * run it was for the next turn, behind it in the steering queue.
 */
export function giveBackUnwritten(state: SessionState, run: RunState, unwritten: readonly NewRecord[]): void {
  const waiting = unwritten.filter((record) => !keyOf(record).startsWith(`${run.runId}/`));
  const added: QueuedMessage[] = [];
  const events: NewRecord[] = [];
  const entries: NewEntry[] = [];
  for (const record of waiting) {
    if (record.kind === 'entry') {
      if (record.entry.type !== 'message') entries.push(record.entry);
    } else if (record.event.type === 'queue_update') added.push(...record.event.added);
    else events.push(record);
  }
  state.entries.unshift(...entries);
  state.events.unshift(...events);
  // Word of the queues is given anew: later word may be in the log by now.
  state.unlogged.unshift(...added);
  if (!giveBackMessages(state, run, new Set(waiting.map(keyOf))) && added.length > 0) noteQueues(state);
}

/** The messages that a policy must not see yet. */
export function unwrittenMessages(run: RunState, unwritten: readonly NewRecord[]): QueuedMessage['message'][] {
  const keys = new Set(unwritten.map(keyOf));
  return run.pending.filter(({ id }) => keys.has(id)).map(({ message }) => message);
}

function giveBackMessages(state: SessionState, run: RunState, missing: ReadonlySet<string>): boolean {
  const isOpener = (id: string) => id === promptEntryId(run.runId) || signalRunId(id) === run.runId;
  const border = Math.max(
    run.pending.findIndex(({ id }) => isOpener(id)),
    0,
  );
  const before = run.pending.slice(0, border).filter(({ id }) => missing.has(id));
  const behind = run.pending
    .slice(border)
    .filter(({ id }) => missing.has(id))
    // Its run is over without it: under its old id it would open the same run again.
    .map((item) => (isOpener(item.id) ? renamed(state, item) : item));
  return giveBack(state, { nextTurn: before, steer: behind });
}

function renamed(state: SessionState, { message }: QueuedMessage): QueuedMessage {
  const item = { id: signalEntryId(state.chain, nextMessage(state)), message };
  state.unlogged.push(item);
  return item;
}

import type { QueuedMessage } from './events.ts';
import type { AgentMessage } from './messages.ts';

/**
 * Ids of what a run makes are derived from run and turn, so that a retry, a replay and a `workflow reset` write the
 * same entry and find it there.
 */
export function assistantEntryId(runId: string, turn: number): string {
  return `${runId}/${turn}`;
}

export function toolResultEntryId(assistantId: string, index: number): string {
  return `${assistantId}/${index}`;
}

export function promptEntryId(runId: string): string {
  return `${runId}/prompt`;
}

/**
 * Tail of the first run id of a chain of workflow runs: it stays over continue-as-new and reset, and is another for
 * every fresh workflow of a session. The head of the id is a time and so not unique.
 */
export function chainTag(firstExecutionRunId: string): string {
  return firstExecutionRunId.slice(-12);
}

/** A message that came by signal: numbered in the order of history, so its id does not depend on when it is injected. */
export function signalEntryId(chain: string, number: number): string {
  return `m-${chain}-${number}`;
}

/**
 * A run that no prompt opened, but a message that reached an idle session, by the entry id of that message: after a reset,
 * too, the same message opens the same run.
 */
export function signalRunId(entryId: string): string {
  return `run-${entryId.replace(/^m-/, '').replaceAll('/', '-')}`;
}

/** Messages that a queue hook gave to a poll: "RUN/t3" for the one that the third turn's model effect asked. */
export function polledMessages(poll: string, messages: readonly AgentMessage[]): QueuedMessage[] {
  return messages.map((message, index) => ({ id: `${poll}/hook/${index}`, message }));
}

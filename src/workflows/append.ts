import { CancellationScope } from '@temporalio/workflow';
import type { AppendInput, AppendResult } from '../common/effects.ts';
import type { NewRecord } from '../common/events.ts';
import { local } from './activities.ts';
import { hasRunRequest } from './queues.ts';
import { nextNumber, type SessionState } from './state.ts';

/** Events and changes of settings, which stand right behind the end of the turn: what the next effect is to write first. */
export function takeRecords(state: SessionState): NewRecord[] {
  const entries = state.entries.splice(0).map((entry): NewRecord => ({ kind: 'entry', entry }));
  const events = state.events.splice(0);
  const border = events.findLastIndex(isTurnEnd) + 1 || events.length;
  return [...events.slice(0, border), ...entries, ...events.slice(border)];
}

function isTurnEnd(record: NewRecord): boolean {
  return record.kind === 'event' && record.event.type === 'turn_end';
}

/**
 * Writes through a local activity, whatever is being cancelled meanwhile. Repeated by a retry it changes nothing, since
 * every record has a key of its own.
 */
export async function append(state: SessionState, input: Omit<AppendInput, 'key'>): Promise<AppendResult> {
  const key = `${state.chain}/${nextNumber(state)}/append`;
  const result = await CancellationScope.nonCancellable(() => local.append({ key, ...input }));
  state.counts.effects += 1;
  state.leaf = result.leaf;
  return result;
}

/** Lets readers see now what would otherwise travel with the next effect, which may be minutes away. */
export async function flushEvents(state: SessionState): Promise<void> {
  const run = state.run;
  // A run that begins at once takes them along. After `workflow reset` a write that knows no run would end that one.
  if (run === null && hasRunRequest(state)) return;
  if (state.opened === undefined || state.events.length + (run === null ? state.entries.length : 0) === 0) return;
  const records = run === null || state.events.some(isTurnEnd) ? takeRecords(state) : state.events.splice(0);
  await append(state, run === null ? { records } : { runId: run.runId, turn: run.turn, records });
}

import { CancellationScope } from '@temporalio/workflow';
import { flags, type ModelInput, type ModelResult } from '../common/effects.ts';
import { messageRecords, type NewRecord } from '../common/events.ts';
import { assistantEntryId, toolResultEntryId } from '../common/ids.ts';
import { addTotals } from '../common/usage.ts';
import { modelEffects } from './activities.ts';
import { takeRecords } from './append.ts';
import { failedByAbort } from './failures.ts';
import { beginAbort } from './queues.ts';
import { openedOf, type RunState, type SessionState } from './state.ts';
import { type BatchOutcome, runToolBatch } from './tool-batch.ts';
import { giveBackUnwritten } from './unwritten.ts';

/** Takes the reply of a turn. @returns its tool batch, or what stands for it when there is none */
export function takeReply(
  state: SessionState,
  run: RunState,
  reply: ModelResult,
  wantMessage: boolean,
): BatchOutcome | Promise<BatchOutcome> {
  state.counts.usage = addTotals(state.counts.usage, reply.usage);
  run.poll = false;
  run.asking = null;
  state.leaf = reply.leaf;
  state.counts.turns += 1;
  if (reply.stopReason === 'aborted') beginAbort(state, run);
  if (reply.unwritten !== undefined) giveBackUnwritten(state, run, reply.unwritten);
  run.pending = [];
  return isFailed(reply) || reply.calls.length === 0
    ? { terminate: true, toolResults: [] }
    : runToolBatch(state, run, reply, wantMessage);
}

/** `turn_end` waits for the next effect, which writes it. */
export function endTurn(state: SessionState, run: RunState, reply: ModelResult): void {
  state.events.push(turnEnd(run, isFailed(reply) ? 0 : reply.calls.length));
}

export function isFailed({ stopReason }: ModelResult): boolean {
  return stopReason === 'error' || stopReason === 'aborted';
}

/** What stands in the log before the reply: the records that waited, turn_start, and the messages of this turn. */
export function turnRecords(state: SessionState, run: RunState): NewRecord[] {
  const start: NewRecord[] = [
    { kind: 'event', key: `${run.runId}/${run.turn}/turn_start`, event: { type: 'turn_start' } },
  ];
  if (run.turn === 0) start.unshift({ kind: 'event', key: `${run.runId}/agent_start`, event: { type: 'agent_start' } });
  return [...takeRecords(state), ...start, ...messageRecords(run.pending)];
}

export function turnEnd(run: RunState, calls: number): NewRecord {
  const messageId = assistantEntryId(run.runId, run.turn);
  const toolResultIds = Array.from({ length: calls }, (_, index) => toolResultEntryId(messageId, index));
  const event = { type: 'turn_end', messageId, toolResultIds } as const;
  return { kind: 'event', key: `${run.runId}/${run.turn}/turn_end`, event, turn: run.turn };
}

/**
 * An abort that reaches the effect gives the partial reply. One that comes before the effect has begun (it waits for a
 * worker, or for its next attempt) cancels it outright: then the same effect is asked again to write what it was given
 * and an aborted reply, so that no accepted message is lost.
 */
export function streamReply(state: SessionState, run: RunState, wantMessage: boolean): Promise<ModelResult> {
  const { manifest } = openedOf(state);
  const input: ModelInput = {
    agent: manifest.agent,
    runId: run.runId,
    turn: run.turn,
    entryId: assistantEntryId(run.runId, run.turn),
    model: state.model,
    thinkingLevel: state.thinkingLevel,
    activeTools: state.activeTools,
    write: turnRecords(state, run),
    ...flags({ gated: manifest.hooks.beforeToolCall !== null, wantMessage, poll: run.poll }),
    ...(run.turn === 0 ? { openRun: run.token } : {}),
    ...(run.base === null ? {} : { base: run.base }),
    ...(run.systemPrompt === null ? {} : { systemPrompt: run.systemPrompt }),
  };
  run.asking = state.model;
  const { streamAssistantResponse } = modelEffects(manifest);
  state.counts.effects += 1;
  const settle = () => CancellationScope.nonCancellable(() => streamAssistantResponse({ ...input, aborted: true }));
  if (run.aborting) return settle();
  return streamAssistantResponse(input).catch((error: unknown) => {
    if (!failedByAbort(run, error)) throw error;
    beginAbort(state, run);
    return settle();
  });
}

import type { AppendInput, AppendResult } from '../common/effects.ts';
import type { Commit, SettledCall, StoredBatch } from '../store/types.ts';
import { runWrite } from './effect.ts';
import type { Runtime } from './runtime.ts';
import { notEnteredText, startRecord, textOutcome, toResultMessage } from './tools/outcome.ts';

/** Writes what the workflow causes. As a local activity it costs 2 ms; repeated, it changes nothing. */
export function append(runtime: Runtime, input: AppendInput): Promise<AppendResult> {
  const place = {
    effect: input.key,
    ...(input.runId === undefined ? {} : { runId: input.runId }),
    ...(input.turn === undefined ? {} : { turn: input.turn }),
  };
  return runWrite(runtime, place, async (fence) => {
    const now = Date.now();
    const batch =
      input.settleOpen === undefined
        ? undefined
        : await runtime.store.readBatch(fence.sessionId, input.settleOpen.entryId);
    const { runId } = input;
    const commit: Commit = {
      records: input.records,
      ...(input.settings === undefined ? {} : { settings: input.settings }),
      ...(input.openRun === undefined || runId === undefined ? {} : { openRun: { runId, token: input.openRun } }),
      ...(batch === undefined ? {} : { settle: openCalls(input, batch, now) }),
      ...(input.closeRun === undefined || runId === undefined ? {} : { closeRun: { runId, ...input.closeRun } }),
    };
    const written = await runtime.store.commit(fence, commit);
    const duplicate = written.duplicateRun === undefined ? {} : { duplicate: true };
    return { leaf: written.leaf, ...duplicate, ...(await resultsOf(runtime, fence.sessionId, input)) };
  });
}

/** Every call of the batch that has no result: the model is told apart what never started and what may have happened. */
function openCalls({ settleOpen }: AppendInput, batch: StoredBatch, timestamp: number): SettledCall[] {
  if (settleOpen === undefined) return [];
  const { entryId, outcome, reason, sequential = false } = settleOpen;
  return batch.calls
    .filter((call) => call.settled === undefined)
    .map((call) => {
      const announced = {
        type: 'toolCall',
        id: call.toolCallId,
        name: call.toolName,
        arguments: call.args,
      } as Parameters<typeof startRecord>[2];
      return {
        entryId,
        index: call.index,
        outcome: call.claimed ? 'unknown' : outcome,
        result: textOutcome(notEnteredText(reason, call.toolName, call.claimed)),
        isError: true,
        timestamp,
        sequential,
        before: [startRecord(entryId, call.index, announced)],
      };
    });
}

async function resultsOf(
  runtime: Runtime,
  sessionId: string,
  input: AppendInput,
): Promise<Pick<AppendResult, 'toolResults'>> {
  if (!input.wantMessage || input.settleOpen === undefined) return {};
  const batch = await runtime.store.readBatch(sessionId, input.settleOpen.entryId);
  return {
    toolResults: (batch?.calls ?? []).flatMap((call) =>
      call.settled === undefined ? [] : [toResultMessage({ id: call.toolCallId, name: call.toolName }, call.settled)],
    ),
  };
}

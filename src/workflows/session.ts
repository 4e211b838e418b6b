import {
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  isCancellation,
  workflowInfo,
} from '@temporalio/workflow';
import { EverturnError, toErrorInfo } from '../common/errors.ts';
import { chainTag } from '../common/ids.ts';
import { type SessionInput, sessionInputSchema } from '../common/signals.ts';
import { quick } from './activities.ts';
import { flushEvents } from './append.ts';
import { errorInfoOf, failureOf } from './failures.ts';
import { installHandlers } from './handlers.ts';
import { beginAbort, hasQueued, hasRunRequest, takeRunRequest } from './queues.ts';
import { executeRun, RollOver } from './run.ts';
import { adoptOpened, carryOf, newRun, newState, openedOf, type SessionState } from './state.ts';

/**
 * A session as a workflow, with the session id as workflow id. It opens the session in the store, carries out run after
 * run, lingers, and completes; the next message starts a fresh one that finds everything in the store. It fails only
 * when the session cannot be opened or when a run's end cannot be written; the store then closes the run when it opens next.
 */
export async function agentSession(input: SessionInput): Promise<void> {
  const state = newState(parseInput(input), chainTag(workflowInfo().firstExecutionRunId));
  installHandlers(state);
  try {
    await open(state);
  } catch (error) {
    state.failure = errorInfoOf(error);
    await condition(allHandlersFinished);
    throw failureOf(state.failure);
  }
  try {
    await serve(state);
  } catch (error) {
    if (!(error instanceof RollOver)) throw isCancellation(error) ? error : failureOf(errorInfoOf(error));
    await condition(allHandlersFinished);
    await continueAsNew<typeof agentSession>({ ...state.input, carry: carryOf(state) });
  }
}

function parseInput(input: unknown): SessionInput {
  const parsed = sessionInputSchema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const error = new EverturnError(
    'invalid_argument',
    `Input of agentSession: ${issue?.path.join('.')}: ${issue?.message}. Send {"agent": "NAME"}.`,
  );
  throw failureOf(toErrorInfo(error));
}

async function open(state: SessionState): Promise<void> {
  const { agent, model, thinkingLevel, activeTools } = state.input;
  const opened = await quick.openSession({
    agent,
    ...(model === undefined ? {} : { model }),
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
    ...(activeTools === undefined ? {} : { activeTools }),
    ...(state.run === null ? {} : { continuingRunId: state.run.runId }),
  });
  adoptOpened(state, opened);
  state.counts.effects += 1;
}

/** @throws RollOver when the history is full. A cancelled workflow ends its run as aborted, and then itself. */
async function serve(state: SessionState): Promise<void> {
  const { lingerMs } = openedOf(state).manifest;
  for (;;) {
    if (state.run === null) {
      const request = takeRunRequest(state);
      if (request !== undefined) {
        state.run = newRun(request);
        // What waits in the queues goes with it, as when a run is aborted that has begun.
        if (request.aborted) beginAbort(state, state.run);
      }
    }
    if (state.run !== null) {
      await executeRun(state, state.run);
      continue;
    }
    if (CancellationScope.current().consideredCancelled) await CancellationScope.current().cancelRequested;
    if (workflowInfo().continueAsNewSuggested && allHandlersFinished()) throw new RollOver();
    await flushEvents(state);
    const called = await condition(() => hasRunRequest(state), lingerMs);
    if (called || hasRunRequest(state)) continue;
    // What waits in a queue is in the workflow alone: it stays up until a run has taken it.
    if (hasQueued(state.queues)) await condition(() => hasRunRequest(state) || !hasQueued(state.queues));
    else if (allHandlersFinished()) return;
  }
}

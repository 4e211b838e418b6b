import type { SessionHandle } from '../../client/index.ts';
import { type ErrorInfo, isEverturnError, toErrorInfo } from '../../common/errors.ts';
import type { RunStatus, SessionEvent } from '../../common/events.ts';
import type { UsageTotals } from '../../common/usage.ts';
import type { Store } from '../../store/types.ts';

/** How a run ended. Without turns and usage: it did not, its workflow was closed from outside. */
export interface RunEnd {
  status: RunStatus;
  error?: ErrorInfo;
  text?: string;
  turns?: number;
  usage?: UsageTotals;
}

/**
 * Hands over the session's events from an offset on, up to the last one of the run, and returns how the run ended;
 * nothing when the signal fires before. A run whose workflow was ended from outside ends with `session_closed`.
 */
export async function followRun(
  store: Store,
  session: SessionHandle,
  place: { runId: string; from: number; signal: AbortSignal },
  onEvent: (event: SessionEvent) => void,
): Promise<RunEnd | undefined> {
  const { runId, from, signal } = place;
  const over = new AbortController();
  let closed: ErrorInfo | undefined;
  const stop = AbortSignal.any([signal, over.signal]);
  // The log tells the end, as long as there is a workflow to write it.
  session.result(runId, { signal: stop }).catch((error: unknown) => {
    if (!isEverturnError(error, 'session_closed')) return;
    closed = toErrorInfo(error);
    over.abort();
  });
  let last = Number.POSITIVE_INFINITY;
  try {
    for await (const event of session.events({ from, signal: stop })) {
      onEvent(event);
      if (event.type === 'agent_end' && event.runId === runId)
        last = (await store.readRun(session.sessionId, runId))?.lastOffset ?? 0;
      if ((event.offset ?? -1) >= last) break;
    }
  } finally {
    over.abort();
  }
  if (signal.aborted) return undefined;
  return closed === undefined ? endOf(session, runId) : { status: 'interrupted', error: closed };
}

async function endOf(session: SessionHandle, runId: string): Promise<RunEnd> {
  try {
    const { status, error, text, turns, usage } = await session.result(runId);
    return { status, text, turns, usage, ...(error === undefined ? {} : { error }) };
  } catch (error) {
    // What broke the run stands in its end too.
    return { status: 'error', error: toErrorInfo(error) };
  }
}

import { type ErrorCode, type ErrorInfo, EverturnError } from '../common/errors.ts';
import type { RunStatus } from '../common/events.ts';
import { type AssistantMessage, textOf } from '../common/messages.ts';
import type { UsageTotals } from '../common/usage.ts';
import type { RunKey, RunRow, Store } from '../store/types.ts';
import type { RunWatcher } from './run-watcher.ts';

export interface RunResult {
  runId: string;
  status: RunStatus;
  /** Text of the last assistant message; empty when there is none. */
  text: string;
  message?: AssistantMessage;
  turns: number;
  usage: UsageTotals;
  /** Set when the status is `error`. */
  error?: ErrorInfo;
}

// Not the model's word but a failure around it: `result()` rejects with it.
const rejecting: readonly ErrorCode[] = [
  'hook',
  'policy',
  'policy_changed',
  'fenced',
  'store',
  'internal',
  'unknown_agent',
];
const liveCheckMs = 2_000;

/**
 * Waits for the end of a run in the store.
 * @param probe asked now and then what Temporal says: a run whose workflow was ended from outside would never end by
 * itself, and one that nobody knows would never begin
 */
export async function waitForRun(
  { store, runs }: { store: Store; runs: RunWatcher },
  key: RunKey,
  probe: () => Promise<RunProbe>,
  signal: AbortSignal | undefined,
): Promise<RunRow> {
  const { sessionId, runId } = key;
  const since = Date.now();
  for (;;) {
    const ended = await runs.ended(key, {
      since,
      timeoutMs: liveCheckMs,
      ...(signal === undefined ? {} : { signal }),
    });
    if (ended !== undefined) return ended;
    const found = await probe();
    if (found === 'expected') continue;
    const last = await store.readRun(sessionId, runId);
    if (last !== undefined && last.status !== 'open') return last;
    if (found === 'closed') throw closed(sessionId, runId, last);
    if (last === undefined) throw unknownRun(sessionId, runId);
  }
}

/** @throws EverturnError what a hook, a policy or the store broke the run with */
export async function toRunResult(store: Store, run: RunRow): Promise<RunResult> {
  const { runId, status, turns, usage, error } = run;
  if (error !== undefined && rejecting.includes(error.code)) {
    throw new EverturnError(error.code, error.message, error.details === undefined ? {} : { details: error.details });
  }
  const [entry] =
    run.lastAssistantId === undefined ? [] : await store.readEntries(run.sessionId, [run.lastAssistantId]);
  const message = entry?.type === 'message' ? (entry.message as AssistantMessage) : undefined;
  return {
    runId,
    status: status === 'open' ? 'interrupted' : status,
    text: message === undefined ? '' : textOf(message),
    turns,
    usage,
    ...(message === undefined ? {} : { message }),
    ...(error === undefined ? {} : { error }),
  };
}

/** `expected`: it is going on or waits. `closed`: the session has no workflow. `unknown`: its workflow knows no such run. */
export type RunProbe = 'expected' | 'closed' | 'unknown';

function unknownRun(sessionId: string, runId: string): EverturnError {
  return new EverturnError('not_found', `Session "${sessionId}" has no run "${runId}". A prompt opens one.`, {
    details: { sessionId, runId },
  });
}

function closed(sessionId: string, runId: string, run: RunRow | undefined): EverturnError {
  const what = run === undefined ? 'is not known' : 'did not end';
  return new EverturnError(
    'session_closed',
    `Run "${runId}" ${what}, and session "${sessionId}" has no workflow running. The next prompt records it as interrupted.`,
    { details: { sessionId, runId } },
  );
}

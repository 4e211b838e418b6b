import type { ReplayOptions, ReplayResult, SessionHistory } from './replay/types.ts';

export type { ReplayOptions, ReplayResult, SessionHistory } from './replay/types.ts';

/**
 * Carries out what workflow code and policies of today would do with the history of a session, and compares it with what
 * was done: every effect in its order, and the input of each. Nothing is executed, and no server is needed.
 * @throws EverturnError `policy_changed`, with the first effect that differs in `details`; `invalid_config` when the
 * workflows file cannot be bundled; `invalid_argument` for what is no whole history of a session, or one whose large
 * payloads are in a store that was not given
 */
export async function replayHistory(history: SessionHistory, options: ReplayOptions = {}): Promise<void> {
  const [result] = await replayHistories({ history }, options);
  if (result?.error !== undefined) throw result.error;
}

/**
 * The same for many histories by name, with one bundle. What differs is in the results, in their order.
 * @throws EverturnError `invalid_config` when the workflows file cannot be bundled
 */
export async function replayHistories(
  histories: Readonly<Record<string, SessionHistory>>,
  options: ReplayOptions = {},
): Promise<ReplayResult[]> {
  // Temporal's worker takes half a second to load: only those who replay pay for it.
  const { runReplays } = await import('./replay/run-replays.ts');
  return runReplays(histories, options);
}

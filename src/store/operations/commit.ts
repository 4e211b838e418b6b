import type { Json } from '../../common/json.ts';
import type { Db, SessionsRow } from '../schema.ts';
import type { ClaimResult, Commit, CommitResult, Fence, SettledCall } from '../types.ts';
import { readSettled, registerBatch, settleCalls } from './batches.ts';
import { claimTool } from './claims.ts';
import { type Entered, enter, finishEffect } from './fence.ts';
import { appendRecords, type Place } from './log.ts';
import { saveRequest } from './requests.ts';
import { addRunUsage, closeRun, findDuplicate, openRun } from './runs.ts';
import { saveSession } from './session-row.ts';

/**
 * Writes all of an effect's outcome or nothing of it. Repeating a commit is safe: records have keys, calls settle once,
 * and once a commit with `result` went through the effect changes nothing any more. Only `usage` adds up, so it belongs
 * into the commit that carries `result`.
 */
export async function commit(db: Db, fence: Fence, parts: Commit): Promise<CommitResult> {
  return applyCommit(db, fence, await enter(db, fence), parts);
}

/** The same for a writer that is in already. */
export async function applyCommit(
  db: Db,
  fence: Fence,
  { session, effect }: Entered,
  parts: Commit,
): Promise<CommitResult> {
  if (parts.openRun !== undefined) {
    const duplicateRun = await findDuplicate(db, fence.sessionId, parts.openRun);
    if (duplicateRun !== undefined) return { leaf: session.leaf, duplicateRun };
  }
  const { records = [], settle = [], after = [] } = parts;
  if (effect.finished_at !== null) {
    const adopted = JSON.parse(effect.result ?? 'null') as Json;
    return { ...committed(session, await readSettled(db, session.session_id, settle)), adopted };
  }

  const place: Place = { runId: fence.runId ?? null, turn: fence.turn ?? null };
  // With no call to settle in between they stand next to each other in the log, and are appended in one go.
  const together = settle.length === 0;
  if (parts.openRun !== undefined) await openRun(db, session, parts.openRun);
  await appendRecords(db, session, place, together ? [...records, ...after] : records);
  const claim = parts.claim === undefined ? undefined : await claimTool(db, session, place, parts.claim);
  if (parts.settings !== undefined) applySettings(session, parts.settings);
  if (parts.batch !== undefined) await registerBatch(db, session.session_id, place, parts.batch);
  const settledBefore = together ? [] : await settleCalls(db, session, place, settle);
  if (!together) await appendRecords(db, session, place, after);
  if (parts.request !== undefined) await saveRequest(db, session.session_id, parts.request);
  if (parts.usage !== undefined) await addRunUsage(db, session, fence.runId, parts.usage);
  if (parts.closeRun !== undefined) await closeRun(db, session, parts.closeRun);
  const late = settle.length > 0 && settledBefore.length === settle.length;
  if (parts.result !== undefined && !late) await finishEffect(db, fence, parts.result);
  await saveSession(db, session);
  return committed(session, settledBefore, claim);
}

function committed(
  { leaf }: SessionsRow,
  settledBefore: SettledCall[],
  claim?: ClaimResult,
): Extract<CommitResult, { duplicateRun?: undefined }> {
  return {
    leaf,
    ...(settledBefore.length === 0 ? {} : { settledBefore }),
    ...(claim === undefined ? {} : { claim }),
  };
}

function applySettings(session: SessionsRow, settings: NonNullable<Commit['settings']>): void {
  if (settings.model !== undefined) session.model = settings.model;
  if (settings.thinkingLevel !== undefined) session.thinking_level = settings.thinkingLevel;
  if (settings.activeTools !== undefined) {
    session.active_tools = settings.activeTools === null ? null : JSON.stringify(settings.activeTools);
  }
}

import type { Json } from '../../common/json.ts';
import type { CallsRow, Db, SessionsRow } from '../schema.ts';
import type { ClaimRequest, ClaimResult, Fence, SettledCall } from '../types.ts';
import { selectCall, updateCall } from './batches.ts';
import { enter } from './fence.ts';
import { appendRecords, type Place } from './log.ts';
import { statement } from './statement.ts';

const updateClaimed = statement<CallsRow, unknown>((db, arg) =>
  db
    .updateTable('calls')
    .set({ entries: 1, replay: arg('replay'), args_digest: arg('args_digest'), claimed_at: arg('claimed_at') })
    .where('session_id', '=', arg('session_id'))
    .where('entry_id', '=', arg('entry_id'))
    .where('call_index', '=', arg('call_index')),
);

/**
 * Asks to enter a tool. The first claim of a call enters. Any later one finds that somebody was in the tool and did not
 * report: with replay `never`, now or at the first claim, it must not be entered again, whatever attempt or workflow run
 * asks.
 */
export async function claimTool(db: Db, session: SessionsRow, place: Place, claim: ClaimRequest): Promise<ClaimResult> {
  const call = await selectCall(db, session.session_id, claim.entryId, claim.index);
  if (call.settled !== null) return { state: 'settled', settled: JSON.parse(call.settled) as SettledCall };
  if (claim.withhold === true) return { state: 'withheld', before: call.entries > 0 };
  if (claim.start !== undefined) await appendRecords(db, session, place, [claim.start]);
  if (call.entries === 0) {
    const { replay, argsDigest } = claim;
    await updateClaimed(db, { ...call, replay, args_digest: argsDigest, claimed_at: Date.now() });
    return { state: 'entered' };
  }
  if (claim.replay === 'never' || call.replay === 'never') return { state: 'unknown', ...progressOf(call) };
  await updateCall(db, call, { entries: call.entries + 1 });
  return { state: 'again', entries: call.entries + 1, ...progressOf(call) };
}

/** Keeps the last progress of a running tool. One that is settled keeps what it had. */
export async function saveProgress(
  db: Db,
  fence: Fence,
  entryId: string,
  index: number,
  progress: Json,
): Promise<void> {
  await enter(db, fence);
  const call = await selectCall(db, fence.sessionId, entryId, index);
  if (call.settled === null) await updateCall(db, call, { progress: JSON.stringify(progress) });
}

function progressOf(call: CallsRow): { progress?: Json } {
  return call.progress === null ? {} : { progress: JSON.parse(call.progress) as Json };
}

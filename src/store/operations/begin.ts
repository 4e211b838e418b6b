import type { Json } from '../../common/json.ts';
import type { Db } from '../schema.ts';
import type { BegunEffect, Commit, Fence } from '../types.ts';
import { applyCommit } from './commit.ts';
import { enter } from './fence.ts';
import { findDuplicate, readRun } from './runs.ts';

/**
 * Begins an attempt, and tells what earlier ones left: the result, outcomes of steps, whether the run is aborted or over.
 * What the effect is to write first goes with it in one transaction, unless there is nothing left to do.
 */
export async function beginEffect(db: Db, fence: Fence, first?: Commit): Promise<BegunEffect> {
  const entered = await enter(db, fence);
  const { effect } = entered;
  const opening = first?.openRun;
  const repeated = opening !== undefined && (await findDuplicate(db, fence.sessionId, opening)) !== undefined;
  const done = effect.result !== null && !repeated;
  const ended = opening === undefined && !done && (await hasEnded(db, fence));
  const aborted = await isAborted(db, fence);
  const begin =
    first?.claim === undefined || !aborted ? first : { ...first, claim: { ...first.claim, withhold: true } };
  const committed = begin === undefined || done || ended ? undefined : await applyCommit(db, fence, entered, begin);
  // Most effects begin once: then nothing can be kept yet.
  const steps = effect.attempts === 1 ? [] : await readSteps(db, fence);
  return {
    attempts: effect.attempts,
    ...(done ? { result: JSON.parse(effect.result ?? 'null') as Json } : {}),
    steps: Object.fromEntries(steps.map((step) => [step.name, JSON.parse(step.outcome) as Json])),
    abortRequested: aborted,
    ...(ended ? { runEnded: true } : {}),
    ...(committed === undefined ? {} : { committed }),
  };
}

async function readSteps(db: Db, fence: Fence): Promise<{ name: string; outcome: string }[]> {
  return db
    .selectFrom('steps')
    .select(['name', 'outcome'])
    .where('session_id', '=', fence.sessionId)
    .where('effect', '=', fence.effect)
    .execute();
}

async function hasEnded(db: Db, fence: Fence): Promise<boolean> {
  if (fence.runId === undefined) return false;
  const run = await readRun(db, fence.sessionId, fence.runId);
  return run !== undefined && run.status !== 'open';
}

async function isAborted(db: Db, fence: Fence): Promise<boolean> {
  if (fence.runId === undefined) return false;
  const row = await db
    .selectFrom('controls')
    .select('at')
    .where('session_id', '=', fence.sessionId)
    .where('run_id', '=', fence.runId)
    .where('kind', '=', 'abort')
    .executeTakeFirst();
  return row !== undefined;
}

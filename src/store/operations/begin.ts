import type { Json } from '../../common/json.ts';
import type { Db, RunsRow } from '../schema.ts';
import type { BegunEffect, Commit, Fence } from '../types.ts';
import { applyCommit } from './commit.ts';
import { enter } from './fence.ts';
import { findDuplicate } from './runs.ts';
import { statement } from './statement.ts';

/** Only an open run can be asked to stop, so there is no control record without a run. */
const selectState = statement<
  Pick<RunsRow, 'session_id' | 'run_id'>,
  Pick<RunsRow, 'status'> & { aborted: string | null }
>((db, arg) =>
  db
    .selectFrom('runs')
    .leftJoin('controls', (join) =>
      join
        .onRef('controls.session_id', '=', 'runs.session_id')
        .onRef('controls.run_id', '=', 'runs.run_id')
        .on('controls.kind', '=', 'abort'),
    )
    .select(['runs.status', 'controls.kind as aborted'])
    .where('runs.session_id', '=', arg('session_id'))
    .where('runs.run_id', '=', arg('run_id')),
);

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
  const { over, aborted } = await stateOfRun(db, fence);
  const ended = !done && !repeated && over;
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

/** Whether the run that the effect works for is over, and whether an abort names it. */
async function stateOfRun(db: Db, { sessionId, runId }: Fence): Promise<{ over: boolean; aborted: boolean }> {
  if (runId === undefined) return { over: false, aborted: false };
  const [run] = await selectState(db, { session_id: sessionId, run_id: runId });
  return { over: run !== undefined && run.status !== 'open', aborted: run !== undefined && run.aborted !== null };
}

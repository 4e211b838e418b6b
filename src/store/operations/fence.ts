import { EverturnError } from '../../common/errors.ts';
import type { Json } from '../../common/json.ts';
import type { Db, EffectsRow, SessionsRow } from '../schema.ts';
import type { Fence } from '../types.ts';
import { lockSession } from './session-row.ts';
import { insertStatement, statement } from './statement.ts';

type EffectKey = Pick<EffectsRow, 'session_id' | 'effect'>;

const selectEffect = statement<EffectKey, EffectsRow>((db, arg) =>
  db.selectFrom('effects').selectAll().where('session_id', '=', arg('session_id')).where('effect', '=', arg('effect')),
);

const insertEffects = insertStatement<EffectsRow>(
  [
    'session_id',
    'effect',
    'kind',
    'run_id',
    'workflow_run',
    'attempt',
    'attempts',
    'started_at',
    'finished_at',
    'result',
  ],
  (db, rows) => db.insertInto('effects').values(rows),
);

const updateFinished = statement<EffectKey & Pick<EffectsRow, 'result' | 'finished_at'>, unknown>((db, arg) =>
  db
    .updateTable('effects')
    .set({ result: arg('result'), finished_at: arg('finished_at') })
    .where('session_id', '=', arg('session_id'))
    .where('effect', '=', arg('effect')),
);

export interface Entered {
  session: SessionsRow;
  /** The effect's row as it is after this attempt was noted. */
  effect: EffectsRow;
}

export function fencedByOwner(session: SessionsRow): EverturnError {
  return new EverturnError(
    'fenced',
    `Session ${session.session_id} belongs to a later workflow run (epoch ${session.epoch}): this one must stop.`,
    { details: { reason: 'owner', epoch: session.epoch } },
  );
}

/**
 * Locks the session and lets the writer in, or throws `fenced`: when another workflow run owns the session, or when a
 * later attempt of the effect has begun. The first write of an attempt shuts out the attempts before it.
 */
export async function enter(db: Db, fence: Fence): Promise<Entered> {
  const session = await lockSession(db, fence.sessionId);
  if (session.owner_run !== fence.workflowRunId) throw fencedByOwner(session);
  const [stored] = await selectEffect(db, { session_id: fence.sessionId, effect: fence.effect });
  if (stored === undefined) return { session, effect: await insertEffect(db, fence) };
  const sameRun = stored.workflow_run === fence.workflowRunId;
  if (sameRun && stored.attempt > fence.attempt) {
    throw new EverturnError(
      'fenced',
      `Attempt ${fence.attempt} of ${fence.effect} is over: attempt ${stored.attempt} has begun. This one must stop.`,
      { details: { reason: 'attempt', epoch: session.epoch } },
    );
  }
  if (sameRun && stored.attempt === fence.attempt) return { session, effect: stored };
  const next = { workflow_run: fence.workflowRunId, attempt: fence.attempt, attempts: stored.attempts + 1 };
  await db
    .updateTable('effects')
    .set(next)
    .where('session_id', '=', fence.sessionId)
    .where('effect', '=', fence.effect)
    .execute();
  return { session, effect: { ...stored, ...next } };
}

/** Keeps an outcome of the effect under a name. The first write wins; what is stored is returned. */
export async function saveStep(db: Db, fence: Fence, name: string, outcome: Json): Promise<Json> {
  await enter(db, fence);
  await db
    .insertInto('steps')
    .values({ session_id: fence.sessionId, effect: fence.effect, name, outcome: JSON.stringify(outcome) })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const stored = await db
    .selectFrom('steps')
    .select('outcome')
    .where('session_id', '=', fence.sessionId)
    .where('effect', '=', fence.effect)
    .where('name', '=', name)
    .executeTakeFirstOrThrow();
  return JSON.parse(stored.outcome) as Json;
}

/** Keeps the result: from now on `beginEffect` returns it and further commits of the effect change nothing. */
export async function finishEffect(db: Db, fence: Fence, result: Json): Promise<void> {
  const { sessionId, effect } = fence;
  const finished = { result: JSON.stringify(result), finished_at: Date.now() };
  await updateFinished(db, { session_id: sessionId, effect, ...finished });
}

async function insertEffect(db: Db, fence: Fence): Promise<EffectsRow> {
  const row: EffectsRow = {
    session_id: fence.sessionId,
    effect: fence.effect,
    kind: effectKind(fence.effect),
    run_id: fence.runId ?? null,
    workflow_run: fence.workflowRunId,
    attempt: fence.attempt,
    attempts: 1,
    started_at: Date.now(),
    finished_at: null,
    result: null,
  };
  await insertEffects(db, [row]);
  return row;
}

/** The last part of the effect's name that is not a number: "RUN/t3/model" is a `model`, "RUN/t3/tool/0" a `tool`. */
function effectKind(effect: string): string {
  const parts = effect.split('/').filter((part) => !/^\d*$/.test(part));
  return parts.at(-1) ?? effect;
}

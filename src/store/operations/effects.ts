import type { Db } from '../schema.ts';
import type { EffectCounts } from '../types.ts';

/** How many effects a session (or one run of it) had, and how many attempts they took. */
export async function countEffects(db: Db, sessionId: string, runId?: string): Promise<EffectCounts> {
  let query = db
    .selectFrom('effects')
    .select((eb) => ['kind', eb.fn.countAll<number>().as('effects'), eb.fn.sum<number>('attempts').as('attempts')])
    .where('session_id', '=', sessionId)
    .groupBy('kind')
    .orderBy('kind');
  if (runId !== undefined) query = query.where('run_id', '=', runId);
  const counts: EffectCounts = { effects: 0, attempts: 0, byKind: {} };
  for (const row of await query.execute()) {
    const effects = Number(row.effects);
    const attempts = Number(row.attempts);
    counts.byKind[row.kind] = { effects, attempts };
    counts.effects += effects;
    counts.attempts += attempts;
  }
  return counts;
}

import type { ThinkingLevel } from '../../common/entries.ts';
import { EverturnError } from '../../common/errors.ts';
import type { UsageTotals } from '../../common/usage.ts';
import { noUsage } from '../../common/usage.ts';
import type { Db, SessionsRow } from '../schema.ts';
import type { OpenedSession, OpenSessionRequest, SessionRow } from '../types.ts';
import { fencedByOwner } from './fence.ts';
import { interruptOpenRuns } from './interrupt.ts';
import { appendRecords, firstHash } from './log.ts';
import { lockSession, saveSession } from './session-row.ts';

const unplaced = { runId: null, turn: null };

/**
 * Takes ownership. The first call of a workflow run gives the session a new epoch and ends what earlier owners left open;
 * its retries change nothing. Once a later workflow run has opened the session, earlier ones are `fenced`, except one that
 * Temporal says is the `living` one: that takes the session back, with one more epoch.
 */
export async function openSession(db: Db, request: OpenSessionRequest): Promise<OpenedSession> {
  const { sessionId, workflowRunId } = request;
  await createMissing(db, request);
  const session = await lockSession(db, sessionId);
  const opened = session.owner_run === workflowRunId && session.epoch > 0;
  if (!opened) {
    const again = await hasOpened(db, request);
    if (again && request.living !== true) throw fencedByOwner(session);
    session.epoch += 1;
    // A workflow run opens once as a rule; each time it takes the session back has a record of its own.
    const key = again ? `${openKey(workflowRunId)}/${session.epoch}` : openKey(workflowRunId);
    session.owner_run = workflowRunId;
    const event = { type: 'session_open' as const, epoch: session.epoch, agent: session.agent };
    await appendRecords(db, session, unplaced, [{ kind: 'event', key, event }]);
    await interruptOpenRuns(db, session, request.continuingRunId);
    await saveSession(db, session);
  }
  const interrupted = await db
    .selectFrom('runs')
    .select('run_id')
    .where('session_id', '=', sessionId)
    .where('interrupted_by', '=', workflowRunId)
    .orderBy('first_offset')
    .orderBy('started_at')
    .execute();
  return {
    epoch: session.epoch,
    leaf: session.leaf,
    agent: session.agent,
    model: session.model,
    thinkingLevel: session.thinking_level as ThinkingLevel,
    activeTools: session.active_tools === null ? null : (JSON.parse(session.active_tools) as string[]),
    interruptedRuns: interrupted.map((run) => run.run_id),
  };
}

export async function readSession(db: Db, sessionId: string): Promise<SessionRow | undefined> {
  const row = await db.selectFrom('sessions').selectAll().where('session_id', '=', sessionId).executeTakeFirst();
  return row === undefined ? undefined : toSessionRow(db, row);
}

/** Sessions, the last used first. */
export async function listSessions(db: Db, options: { limit?: number } = {}): Promise<SessionRow[]> {
  const rows = await db
    .selectFrom('sessions')
    .selectAll()
    .orderBy('updated_at', 'desc')
    .orderBy('session_id')
    .limit(options.limit ?? 100)
    .execute();
  const sessions: SessionRow[] = [];
  for (const row of rows) sessions.push(await toSessionRow(db, row));
  return sessions;
}

async function createMissing(db: Db, request: OpenSessionRequest): Promise<void> {
  const { sessionId, defaults } = request;
  if (sessionId === '') throw new EverturnError('invalid_argument', 'A session id cannot be empty.');
  const now = Date.now();
  await db
    .insertInto('sessions')
    .values({
      session_id: sessionId,
      agent: defaults.agent,
      model: defaults.model,
      thinking_level: defaults.thinkingLevel,
      active_tools: defaults.activeTools === null ? null : JSON.stringify(defaults.activeTools),
      epoch: 0,
      owner_run: request.workflowRunId,
      leaf: null,
      length: 0,
      head_hash: firstHash(sessionId),
      usage: JSON.stringify(noUsage),
      runs: 0,
      created_at: now,
      updated_at: now,
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

async function hasOpened(db: Db, request: OpenSessionRequest): Promise<boolean> {
  const row = await db
    .selectFrom('records')
    .select('offset')
    .where('session_id', '=', request.sessionId)
    .where('key', '=', openKey(request.workflowRunId))
    .executeTakeFirst();
  return row !== undefined;
}

async function toSessionRow(db: Db, row: SessionsRow): Promise<SessionRow> {
  const open = await db
    .selectFrom('runs')
    .select('run_id')
    .where('session_id', '=', row.session_id)
    .where('status', '=', 'open')
    .orderBy('started_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return {
    sessionId: row.session_id,
    agent: row.agent,
    model: row.model,
    thinkingLevel: row.thinking_level as ThinkingLevel,
    activeTools: row.active_tools === null ? null : (JSON.parse(row.active_tools) as string[]),
    epoch: row.epoch,
    leaf: row.leaf,
    length: row.length,
    headHash: row.head_hash,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    usage: JSON.parse(row.usage) as UsageTotals,
    runs: row.runs,
    ...(open === undefined ? {} : { openRunId: open.run_id }),
  };
}

function openKey(workflowRunId: string): string {
  return `open/${workflowRunId}`;
}

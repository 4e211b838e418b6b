import type { ErrorInfo } from '../../common/errors.ts';
import type { NewRecord, RunStatus, ToolOutcomeKind } from '../../common/events.ts';
import { assistantEntryId } from '../../common/ids.ts';
import { unansweredReply } from '../../common/messages.ts';
import type { CallsRow, Db, RunsRow, SessionsRow } from '../schema.ts';
import type { SettledCall } from '../types.ts';
import { settleCalls, startRecord } from './batches.ts';
import { appendRecords } from './log.ts';
import { type RunScan, scanRun, startKey } from './run-scan.ts';
import { closeRun, interruptRun } from './runs.ts';

const unknownText =
  'Interrupted, outcome unknown: the tool was started and its session was closed before it reported. It may or may not have taken effect.';
const notStartedText = 'Interrupted before it started: the session was closed';
const noReplyText = 'Interrupted: the session was closed before the model had replied';

/**
 * Ends in the log every run that an earlier owner left open: each call of its batches gets a result, each start event its
 * end, and the run its row. So the transcript is one that a provider takes, and no reader waits for something that will
 * not come.
 */
export async function interruptOpenRuns(db: Db, session: SessionsRow, continuingRunId?: string): Promise<void> {
  const runs = await db
    .selectFrom('runs')
    .selectAll()
    .where('session_id', '=', session.session_id)
    .where('status', '=', 'open')
    .orderBy('first_offset')
    .orderBy('started_at')
    .execute();
  for (const run of runs) {
    if (run.run_id === continuingRunId) continue;
    const end = await closeInLog(db, session, run);
    if (end === undefined) await interruptRun(db, session, run.run_id);
    else await closeRun(db, session, { runId: run.run_id, ...end });
  }
}

/** Appends what is missing. Returns how the run ended if the log knows that already. */
async function closeInLog(
  db: Db,
  session: SessionsRow,
  run: RunsRow,
): Promise<{ status: RunStatus; error?: ErrorInfo } | undefined> {
  await settleOpenCalls(db, session, run, await scanRun(db, run));
  const scan = await scanRun(db, run);
  for (const tool of scan.openTools) {
    await appendRecords(db, session, { runId: run.run_id, turn: tool.turn }, [orphanEnd(tool)]);
  }
  for (const turn of scan.openTurns) await endTurn(db, session, run, scan, turn);
  const prefix = `interrupted/${run.run_id}`;
  const ends: NewRecord[] = [];
  if (scan.agentOpen) {
    ends.push({ kind: 'event', key: `${prefix}/agent_end`, event: { type: 'agent_end', status: 'interrupted' } });
  }
  if (scan.settledOpen) {
    const event = { type: 'settled' as const, nextTurnCount: scan.nextTurnCount };
    ends.push({ kind: 'event', key: `${prefix}/settled`, event });
  }
  await appendRecords(db, session, { runId: run.run_id, turn: null }, ends);
  if (scan.agentEnd === undefined) return undefined;
  const { status, error } = scan.agentEnd;
  return { status, ...(error === undefined ? {} : { error }) };
}

async function settleOpenCalls(db: Db, session: SessionsRow, run: RunsRow, scan: RunScan): Promise<void> {
  const calls = await db
    .selectFrom('calls')
    .selectAll()
    .where('session_id', '=', session.session_id)
    .where('run_id', '=', run.run_id)
    .where('settled', 'is', null)
    .orderBy('turn')
    .orderBy('entry_id')
    .orderBy('call_index')
    .execute();
  for (const call of calls) {
    const started = scan.startedTools.has(startKey(call.turn, call.tool_call_id));
    await settleCalls(db, session, { runId: run.run_id, turn: call.turn }, [interruptedCall(call, started)]);
  }
}

function interruptedCall(call: CallsRow, started: boolean): SettledCall {
  const outcome: ToolOutcomeKind = call.entries > 0 ? 'unknown' : 'aborted';
  const text = call.entries > 0 ? unknownText : notStartedText;
  return {
    entryId: call.entry_id,
    index: call.call_index,
    outcome,
    result: { content: [{ type: 'text', text }] },
    isError: true,
    timestamp: Date.now(),
    before: started ? [] : [startRecord(call)],
  };
}

/** The end of a start event whose call no batch knows. */
function orphanEnd(tool: RunScan['openTools'][number]): NewRecord {
  return {
    kind: 'event',
    key: `interrupted/${tool.key}`,
    event: {
      type: 'tool_execution_end',
      toolCallId: tool.toolCallId,
      toolName: tool.toolName,
      result: { content: [{ type: 'text', text: unknownText }] },
      isError: true,
      outcome: 'unknown',
    },
  };
}

/**
 * Ends a turn. One whose model had not replied gets an empty assistant message with stop reason `aborted`, as pi gives to
 * an aborted turn, under the id that the reply would have had: so whoever read its live deltas sees it end, `turn_end`
 * names a message that exists, and providers are never given it.
 */
async function endTurn(db: Db, session: SessionsRow, run: RunsRow, scan: RunScan, turn: number | null): Promise<void> {
  const prefix = `interrupted/${run.run_id}/t${turn ?? 0}`;
  const records: NewRecord[] = [];
  let messageId = scan.assistants.get(turn);
  if (messageId === undefined) {
    const now = Date.now();
    messageId = assistantEntryId(run.run_id, turn ?? 0);
    const said = { stopReason: 'aborted', errorMessage: noReplyText, timestamp: now } as const;
    const message = { ...unansweredReply(session.model, said), content: [] };
    const timestamp = new Date(now).toISOString();
    records.push({ kind: 'entry', entry: { type: 'message', id: messageId, timestamp, message } });
  }
  const toolResultIds = scan.toolResults.get(turn) ?? [];
  records.push({ kind: 'event', key: `${prefix}/turn_end`, event: { type: 'turn_end', messageId, toolResultIds } });
  await appendRecords(db, session, { runId: run.run_id, turn }, records);
}

import { EverturnError } from '../../common/errors.ts';
import type { NewRecord } from '../../common/events.ts';
import type { Json } from '../../common/json.ts';
import type { ToolResultMessage } from '../../common/messages.ts';
import type { CallsRow, Db, SessionsRow } from '../schema.ts';
import type { BatchRecord, SettledCall, StoredBatch } from '../types.ts';
import { chunksOf } from './chunks.ts';
import { appendRecords, type Place } from './log.ts';
import { insertStatement, statement } from './statement.ts';

type CallKey = Pick<CallsRow, 'session_id' | 'entry_id' | 'call_index'>;
type NewCall = CallKey &
  Pick<
    CallsRow,
    'run_id' | 'turn' | 'tool_call_id' | 'tool_name' | 'result_entry_id' | 'args' | 'entries' | 'appended'
  >;

const insertCalls = insertStatement<NewCall>(
  [
    'session_id',
    'entry_id',
    'call_index',
    'run_id',
    'turn',
    'tool_call_id',
    'tool_name',
    'result_entry_id',
    'args',
    'entries',
    'appended',
  ],
  (db, rows) =>
    db
      .insertInto('calls')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing()),
);

const selectByKey = statement<CallKey, CallsRow>((db, arg) =>
  db
    .selectFrom('calls')
    .selectAll()
    .where('session_id', '=', arg('session_id'))
    .where('entry_id', '=', arg('entry_id'))
    .where('call_index', '=', arg('call_index')),
);

const selectOthers = statement<CallKey, { settled: number }>((db, arg) =>
  db
    .selectFrom('calls')
    .select((eb) => eb.case().when('settled', 'is', null).then(0).else(1).end().as('settled'))
    .where('session_id', '=', arg('session_id'))
    .where('entry_id', '=', arg('entry_id'))
    .where('call_index', '!=', arg('call_index'))
    .where('appended', '=', 0),
);

const updateSettled = statement<CallKey & Pick<CallsRow, 'settled' | 'outcome' | 'appended'>, unknown>((db, arg) =>
  db
    .updateTable('calls')
    .set({ settled: arg('settled'), outcome: arg('outcome'), appended: arg('appended') })
    .where('session_id', '=', arg('session_id'))
    .where('entry_id', '=', arg('entry_id'))
    .where('call_index', '=', arg('call_index')),
);

/** Registers the calls of an assistant message as open. Calls that are registered already stay as they are. */
export async function registerBatch(db: Db, sessionId: string, place: Place, batch: BatchRecord): Promise<void> {
  if (batch.calls.length === 0) return;
  const rows = batch.calls.map((call) => ({
    session_id: sessionId,
    entry_id: batch.entryId,
    call_index: call.index,
    run_id: place.runId,
    turn: place.turn,
    tool_call_id: call.toolCallId,
    tool_name: call.toolName,
    result_entry_id: call.resultEntryId,
    args: JSON.stringify(call.args ?? null),
    entries: 0,
    appended: 0,
  }));
  for (const chunk of chunksOf(rows, 50)) await insertCalls(db, chunk);
}

/**
 * Settles calls: `tool_execution_end` at once, result entries in source order when the last call of the batch is settled,
 * or at once when the call is `sequential`. A settled call keeps what it has, and its `before` is not appended either.
 * @returns the calls that were settled already, as they were
 */
export async function settleCalls(
  db: Db,
  session: SessionsRow,
  place: Place,
  ends: SettledCall[],
): Promise<SettledCall[]> {
  const settledBefore: SettledCall[] = [];
  for (const end of ends) {
    const call = await selectCall(db, session.session_id, end.entryId, end.index);
    if (call.settled !== null) {
      settledBefore.push(JSON.parse(call.settled) as SettledCall);
      continue;
    }
    const { before = [], ...settled } = end;
    const others = await selectWaiting(db, call);
    const complete = others.every((other) => other.settled === 1);
    const withResult = end.sequential === true || others.length === 0;
    const { outcome } = end;
    await updateSettled(db, { ...call, settled: JSON.stringify(settled), outcome, appended: withResult ? 1 : 0 });
    const records = [...before, endRecord(call, end), ...(withResult ? [resultRecord(call, end)] : [])];
    await appendRecords(db, session, place, records);
    if (complete && others.length > 0) await appendWaiting(db, session, place, end.entryId);
  }
  return settledBefore;
}

/** Those of these calls that are settled, as they are. */
export async function readSettled(db: Db, sessionId: string, ends: SettledCall[]): Promise<SettledCall[]> {
  const calls = await Promise.all(ends.map((end) => selectCall(db, sessionId, end.entryId, end.index)));
  return calls.flatMap(({ settled }) => (settled === null ? [] : [JSON.parse(settled) as SettledCall]));
}

/** A true result that came too late for the transcript. The first one is kept. */
export async function addLateResult(
  db: Db,
  sessionId: string,
  entryId: string,
  index: number,
  late: Json,
): Promise<void> {
  const call = await selectCall(db, sessionId, entryId, index);
  if (call.late_result !== null) return;
  await updateCall(db, call, { late_result: JSON.stringify(late) });
}

export async function readBatch(db: Db, sessionId: string, entryId: string): Promise<StoredBatch | undefined> {
  const rows = await selectBatch(db, sessionId, entryId);
  if (rows.length === 0) return undefined;
  const calls = rows.map((row) => ({
    index: row.call_index,
    toolCallId: row.tool_call_id,
    toolName: row.tool_name,
    resultEntryId: row.result_entry_id,
    args: JSON.parse(row.args) as unknown,
    claimed: row.entries > 0,
    ...(row.settled === null ? {} : { settled: JSON.parse(row.settled) as SettledCall }),
    ...(row.progress === null ? {} : { progress: JSON.parse(row.progress) as Json }),
    ...(row.late_result === null ? {} : { lateResult: JSON.parse(row.late_result) as Json }),
  }));
  return { calls };
}

export async function selectCall(db: Db, sessionId: string, entryId: string, index: number): Promise<CallsRow> {
  const [row] = await selectByKey(db, { session_id: sessionId, entry_id: entryId, call_index: index });
  if (row !== undefined) return row;
  throw new EverturnError(
    'not_found',
    `Call ${index} of ${entryId} is not registered in session ${sessionId}. Commit its batch first.`,
  );
}

export async function updateCall(db: Db, call: CallsRow, values: Partial<CallsRow>): Promise<void> {
  await db
    .updateTable('calls')
    .set(values)
    .where('session_id', '=', call.session_id)
    .where('entry_id', '=', call.entry_id)
    .where('call_index', '=', call.call_index)
    .execute();
}

/** Key of the call's `tool_execution_start` or `tool_execution_end`. */
function callKey(entryId: string, index: number, what: 'start' | 'end'): string {
  return `${entryId}/${index}/${what}`;
}

async function selectBatch(db: Db, sessionId: string, entryId: string): Promise<CallsRow[]> {
  return db
    .selectFrom('calls')
    .selectAll()
    .where('session_id', '=', sessionId)
    .where('entry_id', '=', entryId)
    .orderBy('call_index')
    .execute();
}

/** The other calls of the batch that have no result entry yet, and whether they are settled. */
async function selectWaiting(db: Db, call: CallsRow): Promise<{ settled: number }[]> {
  return selectOthers(db, call);
}

/** Appends the results of all calls that wait for the batch to be complete, in its order. */
async function appendWaiting(db: Db, session: SessionsRow, place: Place, entryId: string): Promise<void> {
  const calls = await selectBatch(db, session.session_id, entryId);
  const results = calls.flatMap((call) =>
    call.appended === 1 || call.settled === null ? [] : [{ call, end: JSON.parse(call.settled) as SettledCall }],
  );
  await appendRecords(
    db,
    session,
    place,
    results.map(({ call, end }) => resultRecord(call, end)),
  );
  for (const { call } of results) await updateCall(db, call, { appended: 1 });
}

export function startRecord(call: CallsRow): NewRecord {
  return {
    kind: 'event',
    key: callKey(call.entry_id, call.call_index, 'start'),
    event: {
      type: 'tool_execution_start',
      toolCallId: call.tool_call_id,
      toolName: call.tool_name,
      args: JSON.parse(call.args) as unknown,
    },
  };
}

function endRecord(call: CallsRow, end: SettledCall): NewRecord {
  return {
    kind: 'event',
    key: callKey(call.entry_id, call.call_index, 'end'),
    event: {
      type: 'tool_execution_end',
      toolCallId: call.tool_call_id,
      toolName: call.tool_name,
      result: end.result,
      isError: end.isError,
      outcome: end.outcome,
    },
  };
}

function resultRecord(call: CallsRow, end: SettledCall): NewRecord {
  const { content, details, usage } = end.result;
  // pi-ai types details as JSON; what a tool returned went through JSON on its way here.
  const message = {
    role: 'toolResult',
    toolCallId: call.tool_call_id,
    toolName: call.tool_name,
    content,
    ...(details === undefined ? {} : { details }),
    ...(usage === undefined ? {} : { usage }),
    isError: end.isError,
    timestamp: end.timestamp,
  } as ToolResultMessage;
  const timestamp = new Date(end.timestamp).toISOString();
  return { kind: 'entry', entry: { type: 'message', id: call.result_entry_id, timestamp, message } };
}

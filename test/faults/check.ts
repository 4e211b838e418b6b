import type { LogRecord } from '../../src/common/events.ts';
import { type AssistantMessage, textOf } from '../../src/common/messages.ts';
import { callsWithoutResult, gluedDeltas, unpaired } from '../support/invariants.ts';
import { readWholeLog, transcript } from '../support/transcript.ts';
import { effectsLog } from './agents.ts';
import type { FaultCase } from './cases.ts';
import { normalLog, unknownCalls } from './normal.ts';
import type { FaultSession } from './stage.ts';

/** What is wrong with a session after its disturbance. `lost` and `twice` are about messages, effects and runs. */
export interface Problem {
  kind: 'lost' | 'twice' | 'hung' | 'other';
  text: string;
}

// The history of a turn has at most 12 events; a disturbance adds attempts of tasks, which are events too.
const eventsPerTurn = 12;
const bytesPerTurn = 4_096;
const extraEvents = 60;
const extraBytes = 32 * 1024;

/** The invariants I1 to I5 and I7 on one session, and that its run ended as the case asks for. @param undisturbed the log */
export async function check(
  each: FaultCase,
  session: FaultSession,
  accepted: readonly string[],
  undisturbed: readonly LogRecord[],
): Promise<Problem[]> {
  const { store, sessionId } = session;
  const log = await readWholeLog(store, sessionId);
  return [
    ...(await checkMessages(session, accepted, log)),
    ...(await checkEnd(each, session)),
    ...checkTools(session, log, each),
    ...(await checkHistory(session)),
    ...(each.twist === undefined ? checkSame(log, undisturbed) : []),
  ];
}

/**
 * I1, I2, I4, I7. What an abort took out of the queues is in its event instead of the transcript, and what a run that
 * ended in an error had no use for waits for the next one.
 */
async function checkMessages(
  session: FaultSession,
  accepted: readonly string[],
  log: readonly LogRecord[],
): Promise<Problem[]> {
  const { store, sessionId } = session;
  const verified = await store.verify(sessionId);
  // Those of replies. A local tool that another workflow task repeats has the same attempt, and says "reset" once more.
  const deltas = (await store.readDeltas(sessionId, 0, 100_000)).filter(
    ({ entryId }) => entryId.split('/').length === 2,
  );
  const wrong = [
    ...session.requests().flatMap(({ messages }) => callsWithoutResult(messages).map((text) => `I1: ${text}`)),
    ...unpaired(log).map((text) => `I4: ${text}`),
    ...gluedDeltas(deltas, streamed(log)).map((text) => `I4: ${text}`),
    ...(verified.ok ? [] : [`I7: the chain is broken at ${verified.offset}`]),
  ];
  const read = (await transcript(store, sessionId)).map(textOf);
  const places = [...read, ...clearedTexts(log), ...(await queuedTexts(session))];
  return [
    ...wrong.map((text): Problem => ({ kind: 'other', text })),
    ...accepted.flatMap((text): Problem[] => {
      const count = places.filter((place) => place === text).length;
      if (count === 1) return [];
      return [{ kind: count === 0 ? 'lost' : 'twice', text: `I2: "${text}" stands in ${count} places` }];
    }),
  ];
}

async function queuedTexts({ session }: FaultSession): Promise<string[]> {
  // A workflow never completes with something in a queue.
  const queues = await session.queues().catch(() => undefined);
  return [...(queues?.steer ?? []), ...(queues?.followUp ?? [])].map(textOf);
}

function clearedTexts(log: readonly LogRecord[]): string[] {
  return log.flatMap(({ body }) =>
    body.kind === 'event' && body.event.type === 'abort'
      ? [...body.event.clearedSteer, ...body.event.clearedFollowUp].map(({ message }) => textOf(message))
      : [],
  );
}

/** The replies that were streamed to their end. What a dead worker had streamed of an aborted one is not kept. */
function streamed(log: readonly LogRecord[]): Map<string, AssistantMessage> {
  return new Map(
    log.flatMap(({ body }) => {
      if (body.kind !== 'entry' || body.entry.type !== 'message') return [];
      const message = body.entry.message as AssistantMessage;
      const whole = message.role === 'assistant' && message.stopReason !== 'aborted';
      return whole ? [[body.entry.id, message] as const] : [];
    }),
  );
}

async function checkEnd({ twist, scenario }: FaultCase, session: FaultSession): Promise<Problem[]> {
  const run = await session.store.readRun(session.sessionId, 'r1');
  const own = scenario.status ?? 'done';
  // An abort may come when the run has ended already.
  const allowed = twist?.what === 'abort' ? [own, 'aborted'] : [own];
  const status = run?.status ?? 'not there';
  if (!allowed.includes(status)) return [{ kind: 'lost', text: `The run is ${status} instead of ${allowed}` }];
  const left = status === 'aborted' ? await queuedTexts(session) : [];
  return left.map((text) => ({ kind: 'other', text: `"${text}" is still in a queue after the abort` }));
}

/** I3: a never tool is entered at most once. */
export function checkEntries(session: FaultSession): Problem[] {
  const entered = session.evidence
    .read(effectsLog)
    .filter((line) => line.what === 'entered' && line.tool === 'effect_never');
  return [...Map.groupBy(entered, (line) => String(line.idempotencyKey))].flatMap(([key, own]): Problem[] =>
    own.length > 1 ? [{ kind: 'twice', text: `effect_never was entered ${own.length} times (${key})` }] : [],
  );
}

/** I3, and what is said of a call is what happened to it. */
function checkTools(session: FaultSession, log: readonly LogRecord[], { twist, point }: FaultCase): Problem[] {
  const lines = session.evidence.read(effectsLog);
  const problems = checkEntries(session);
  for (const { body } of log) {
    if (body.kind !== 'event' || body.event.type !== 'tool_execution_end' || body.event.toolName === 'read_local')
      continue;
    const { toolCallId, toolName, outcome } = body.event;
    const done = lines.some((line) => line.toolCallId === toolCallId && line.what === 'done');
    const entered = lines.some((line) => line.toolCallId === toolCallId);
    if (outcome === 'completed' && !done)
      problems.push({ kind: 'lost', text: `${toolCallId} completed, but had no effect` });
    if (outcome === 'unknown' && toolName !== 'effect_never' && twist === undefined)
      problems.push({ kind: 'lost', text: `${toolCallId} is ${toolName}, and its outcome is unknown` });
    if (outcome === 'unknown' && !entered && !/^after beginEffect of .*\/tool/.test(point))
      problems.push({ kind: 'lost', text: `${toolCallId} was never entered, and its outcome is called unknown` });
  }
  return problems;
}

/** I5: history grows with turns. */
async function checkHistory(session: FaultSession): Promise<Problem[]> {
  const { turns, historyEvents, historyBytes } = await session.session.stats();
  const fits =
    historyEvents <= turns * eventsPerTurn + extraEvents && historyBytes <= turns * bytesPerTurn + extraBytes;
  return fits ? [] : [{ kind: 'other', text: `${historyEvents} events and ${historyBytes} bytes for ${turns} turns` }];
}

/** Byte for byte, but for what `normalLog` leaves out. */
export function checkSame(log: readonly LogRecord[], undisturbed: readonly LogRecord[]): Problem[] {
  const unknown = unknownCalls(log);
  const [got, wanted] = [normalLog(log, unknown), normalLog(undisturbed, unknown)];
  const at = wanted.findIndex((line, index) => line !== got[index]);
  const first = at < 0 && got.length > wanted.length ? wanted.length : at;
  if (first < 0) return [];
  const text = `Record ${first} differs from the undisturbed run:\n  - ${wanted[first]}\n  + ${got[first]}`;
  return [{ kind: got.length < wanted.length ? 'lost' : got.length > wanted.length ? 'twice' : 'other', text }];
}

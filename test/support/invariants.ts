import { expect } from '@jest/globals';
import type { LogRecord, StreamRecord } from '../../src/common/events.ts';
import { type AssistantMessage, type Message, textOf, toolCallsOf } from '../../src/common/messages.ts';
import type { Store } from '../../src/store/types.ts';
import type { ScriptedRequest } from '../../src/testing/scripted-model.ts';
import { readWholeLog, transcript } from './transcript.ts';

/** What of a session is checked beside the log itself. */
export interface Checked {
  store: Store;
  sessionId: string;
  requests: readonly ScriptedRequest[];
  /** Texts of all user messages that were accepted. */
  accepted: readonly string[];
}

/** The invariants of the design that hold for every session, whatever happened to it. */
export async function expectInvariants({ store, sessionId, requests, accepted }: Checked): Promise<void> {
  const log = await readWholeLog(store, sessionId);
  const own = requests.filter(
    (request) => request.options.sessionId === undefined || request.options.sessionId === sessionId,
  );
  expect({
    'I1 every call has one result': own.flatMap((request, index) =>
      callsWithoutResult(request.messages).map((what) => `request ${index}: ${what}`),
    ),
    'I2 every message once': await misplaced(store, sessionId, accepted),
    'I4 every start has one end': unpaired(log),
    'I4 no reader glues two attempts': gluedDeltas(
      await store.readDeltas(sessionId, 0, 100_000),
      await assistants(store, sessionId),
    ),
    'I7 the chain holds': await holds(store, sessionId, log.length),
  }).toEqual({
    'I1 every call has one result': [],
    'I2 every message once': [],
    'I4 every start has one end': [],
    'I4 no reader glues two attempts': [],
    'I7 the chain holds': true,
  });
}

/** The log may have grown since it was read: its workflow goes on behind the end of a run. */
async function holds(store: Store, sessionId: string, length: number): Promise<unknown> {
  const verified = await store.verify(sessionId);
  return verified.ok && verified.length >= length ? true : verified;
}

/**
 * I1: each tool call is followed, before any other role, by exactly one result with its id, in source order. Aborted and
 * failed replies are left out by every provider adapter, so their calls count as never made.
 */
export function callsWithoutResult(messages: readonly Message[]): string[] {
  const wrong: string[] = [];
  let open: string[] = [];
  const close = () => {
    if (open.length > 0) wrong.push(`no result for ${open.join(', ')}`);
    open = [];
  };
  for (const [index, message] of messages.entries()) {
    if (message.role === 'toolResult') {
      if (open[0] === message.toolCallId) open.shift();
      else if (open.includes(message.toolCallId))
        wrong.push(`message ${index}: result of ${message.toolCallId} before that of ${open[0]}`);
      else wrong.push(`message ${index}: a result of ${message.toolCallId}, which nobody waits for`);
      continue;
    }
    close();
    if (message.role === 'assistant' && message.stopReason !== 'error' && message.stopReason !== 'aborted') {
      open = toolCallsOf(message).map((call) => call.id);
    }
  }
  close();
  return wrong;
}

/** I2: every accepted text is the text of exactly one user message on the path to the leaf. */
async function misplaced(store: Store, sessionId: string, accepted: readonly string[]): Promise<string[]> {
  const texts = (await transcript(store, sessionId)).filter((message) => message.role === 'user').map(textOf);
  const counted = accepted.map((text) => ({ text, count: texts.filter((other) => other === text).length }));
  return counted.filter(({ count }) => count !== 1).map(({ text, count }) => `"${text}" stands ${count} times`);
}

/** I4: each start event of a run, a turn or a tool has one end event after it, and each run's end one `settled`. */
export function unpaired(log: readonly LogRecord[]): string[] {
  const wrong: string[] = [];
  const open = new Set<string>();
  const ended = new Set<string>();
  const start = (name: string, run: string | null) => {
    if (ended.has(`run ${run}`)) wrong.push(`${name} starts after the end of its run`);
    if (open.has(name) || ended.has(name)) wrong.push(`${name} starts twice`);
    open.add(name);
  };
  const end = (name: string) => {
    if (!open.delete(name)) wrong.push(`${name} ends without a start`);
    ended.add(name);
  };
  for (const { body, runId, turn } of log) {
    if (body.kind !== 'event') continue;
    const { event } = body;
    if (event.type === 'agent_start') start(`run ${runId}`, runId);
    else if (event.type === 'turn_start') start(`turn ${runId}/${turn}`, runId);
    else if (event.type === 'turn_end') end(`turn ${runId}/${turn}`);
    else if (event.type === 'tool_execution_start') start(`tool ${runId}/${turn}/${event.toolCallId}`, runId);
    else if (event.type === 'tool_execution_end') end(`tool ${runId}/${turn}/${event.toolCallId}`);
    else if (event.type === 'agent_end') {
      for (const name of open)
        if (name !== `run ${runId}` && name.includes(` ${runId}/`)) wrong.push(`${name} is open when its run ends`);
      start(`settling of ${runId}`, runId);
      end(`run ${runId}`);
    } else if (event.type === 'settled') end(`settling of ${runId}`);
  }
  return [...wrong, ...[...open].map((name) => `${name} has no end`)];
}

/**
 * I4: deltas of an attempt begin with a reset and are numbered without a gap; a reader that keeps the highest attempt of
 * an entry alone has the text of the stored message, when that attempt was the one that was stored.
 */
export function gluedDeltas(deltas: readonly StreamRecord[], stored: ReadonlyMap<string, AssistantMessage>): string[] {
  const wrong: string[] = [];
  const attempts = Map.groupBy(deltas, ({ entryId, attempt }) => `${entryId} attempt ${attempt}`);
  const last = new Map<string, StreamRecord[]>();
  for (const [name, own] of attempts) {
    if (own[0]?.delta.type !== 'reset') wrong.push(`${name} does not begin with a reset`);
    if (own.some(({ n }, index) => n !== index)) wrong.push(`${name} has a gap`);
    const [{ entryId, attempt } = { entryId: '', attempt: 0 }] = own;
    if (attempt > (last.get(entryId)?.[0]?.attempt ?? 0)) last.set(entryId, own);
  }
  for (const [entryId, own] of last) {
    const text = own.map(({ delta }) => (delta.type === 'text_delta' ? delta.delta : '')).join('');
    const message = stored.get(entryId);
    if (message !== undefined && text !== textOf(message))
      wrong.push(`${entryId}: "${text}" was streamed, "${textOf(message)}" is stored`);
  }
  return wrong;
}

async function assistants(store: Store, sessionId: string): Promise<Map<string, AssistantMessage>> {
  const found = new Map<string, AssistantMessage>();
  for (const { body } of await readWholeLog(store, sessionId)) {
    if (body.kind !== 'entry' || body.entry.type !== 'message') continue;
    const { message } = body.entry;
    if (message.role === 'assistant') found.set(body.entry.id, message as AssistantMessage);
  }
  return found;
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';
import type { NewEntry } from '../../src/common/entries.ts';
import type { LogEvent, LogRecord, NewRecord } from '../../src/common/events.ts';
import type { AssistantMessage } from '../../src/common/messages.ts';
import { emptyUsage } from '../../src/common/usage.ts';
import { openStore } from '../../src/store/index.ts';
import type { OpenStoreOptions } from '../../src/store/open-store.ts';
import type {
  BatchRecord,
  ClaimRequest,
  ClaimResult,
  Fence,
  SessionDefaults,
  SettledCall,
  Store,
} from '../../src/store/types.ts';

export const defaults: SessionDefaults = { agent: 'coder', model: 'faux/one', thinkingLevel: 'off', activeTools: null };

const stores: Store[] = [];
const folders: string[] = [];

afterEach(async () => {
  await Promise.allSettled(stores.splice(0).map((store) => store.close()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder that goes when the test ends. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'everturn-store-'));
  folders.push(folder);
  return folder;
}

/** A store that is closed when the test ends, in a new folder unless `path` says where. */
export async function tempStore(options: Partial<OpenStoreOptions> = {}): Promise<Store> {
  const store = await openStore({ path: tempFolder(), ...options });
  stores.push(store);
  return store;
}

/** A store with session `s`, owned by workflow run `w1`. */
export async function tempSession(options: Partial<OpenStoreOptions> = {}): Promise<Store> {
  const store = await tempStore(options);
  await takeOver(store, 'w1');
  return store;
}

export async function takeOver(store: Store, workflowRunId: string, continuingRunId?: string) {
  return store.openSession({
    sessionId: 's',
    workflowRunId,
    defaults,
    ...(continuingRunId === undefined ? {} : { continuingRunId }),
  });
}

export function fence(effect: string, over: Partial<Fence> = {}): Fence {
  return { sessionId: 's', workflowRunId: 'w1', effect, attempt: 1, runId: 'r', turn: 0, ...over };
}

export function entry(id: string, text = id): NewRecord {
  return entryOf({
    type: 'message',
    id,
    timestamp: '2026-01-01T00:00:00.000Z',
    message: { role: 'user', content: [{ type: 'text', text }], timestamp: 1 },
  });
}

function entryOf(node: NewEntry): NewRecord {
  return { kind: 'entry', entry: node };
}

export function moveLeaf(id: string, targetId: string | null): NewRecord {
  return entryOf({ type: 'leaf', id, timestamp: '2026-01-01T00:00:00.000Z', targetId });
}

export function event(key: string, value: LogEvent): NewRecord {
  return { kind: 'event', key, event: value };
}

export function assistant(id: string, toolCallIds: string[]): NewRecord {
  const message: AssistantMessage = {
    role: 'assistant',
    content: toolCallIds.map((callId) => ({ type: 'toolCall', id: callId, name: 'read', arguments: {} })),
    api: 'faux',
    provider: 'faux',
    model: 'one',
    usage: emptyUsage(),
    stopReason: toolCallIds.length > 0 ? 'toolUse' : 'stop',
    timestamp: 1,
  };
  return entryOf({ type: 'message', id, timestamp: '2026-01-01T00:00:00.000Z', message });
}

function batch(entryId: string, toolCallIds: string[]): BatchRecord {
  return {
    entryId,
    calls: toolCallIds.map((toolCallId, index) => ({
      index,
      toolCallId,
      toolName: 'read',
      resultEntryId: `${entryId}/${index}`,
      args: { path: toolCallId },
    })),
  };
}

export function startOf(entryId: string, index: number, toolCallId: string): NewRecord {
  return event(`${entryId}/${index}/start`, {
    type: 'tool_execution_start',
    toolCallId,
    toolName: 'read',
    args: { path: toolCallId },
  });
}

export function settled(entryId: string, index: number, over: Partial<SettledCall> = {}): SettledCall {
  return {
    entryId,
    index,
    outcome: 'completed',
    result: { content: [{ type: 'text', text: `result ${index}` }] },
    isError: false,
    timestamp: 1_700_000_000_000 + index,
    ...over,
  };
}

export function claim(entryId: string, index: number, replay: 'never' | 'safe' | 'keyed' = 'never') {
  return { entryId, index, toolName: 'read', replay, argsDigest: 'd' };
}

/** Begins the effect with a claim, and gives the answer to it. */
export async function claimTool(store: Store, by: Fence, request: ClaimRequest): Promise<ClaimResult> {
  const { committed } = await store.beginEffect(by, { claim: request });
  if (committed?.claim === undefined) throw new Error(`${by.effect} has nothing left to claim`);
  return committed.claim;
}

/** What the log has, one word a record: an event's type with its call, or an entry's role or type with its id. */
export async function story(store: Store, sessionId = 's'): Promise<string[]> {
  return (await readAll(store, sessionId)).map(({ body }) => {
    if (body.kind === 'entry') {
      return `${body.entry.type === 'message' ? body.entry.message.role : body.entry.type} ${body.entry.id}`;
    }
    return 'toolCallId' in body.event ? `${body.event.type} ${body.event.toolCallId}` : body.event.type;
  });
}

export async function readAll(store: Store, sessionId = 's'): Promise<LogRecord[]> {
  return store.readLog(sessionId, 0, 100_000);
}

/** Opens run `r` of session `s` as its first effect would. */
export async function startRun(
  store: Store,
  runId = 'r',
  records: NewRecord[] = [],
  workflowRunId = 'w1',
): Promise<void> {
  await store.commit(fence(`${runId}/0/open`, { runId, workflowRunId }), {
    openRun: { runId, token: `token-${runId}` },
    records: [
      event(`${runId}/agent_start`, { type: 'agent_start' }),
      event(`${runId}/0/turn_start`, { type: 'turn_start' }),
      entry(`${runId}/prompt`),
      ...records,
    ],
  });
}

/** Run `r` with an assistant message `r/0` of these calls. */
export async function startBatch(store: Store, toolCallIds: string[]): Promise<void> {
  await startRun(store);
  await store.commit(fence('r/0/model'), {
    records: [assistant('r/0', toolCallIds)],
    batch: batch('r/0', toolCallIds),
    result: null,
  });
}

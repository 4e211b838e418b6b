import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { findTemporalBinary } from '../../src/cli/dev-server.ts';
import type { Store } from '../../src/store/types.ts';
import { ClaimCheckCodec } from '../../src/temporal/claim-check.ts';
import type { FaultStage } from '../faults/stage.ts';

const execute = promisify(execFile);

/** A history as `temporal workflow show -o json` prints it, without anything of the machine that recorded it. */
export interface RecordedHistory {
  events: object[];
}

/** The histories of all runs of a session's workflow, oldest first. */
export async function historiesOf(stage: FaultStage, sessionId: string): Promise<RecordedHistory[]> {
  const connection = await Connection.connect({ address: stage.address });
  try {
    const { workflow } = new Client({ connection });
    const newest = await workflow.getHandle(sessionId).describe();
    const runs: RecordedHistory[] = [];
    for (let runId = newest.raw.workflowExecutionInfo?.firstRunId || newest.runId; ; ) {
      runs.push((await plain(await show(stage.address, sessionId, runId), stage.store)) as RecordedHistory);
      const { events } = await workflow.getHandle(sessionId, runId).fetchHistory();
      const next = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
      if (!next) return runs;
      runId = next;
    }
  } finally {
    await connection.close();
  }
}

/** Temporal's own JSON: the client's `historyToJSON` breaks where npm has two copies of protobufjs. */
async function show(address: string, workflowId: string, runId: string): Promise<unknown> {
  const args = ['workflow', 'show', '--address', address, '-w', workflowId, '-r', runId, '-o', 'json'];
  const { stdout } = await execute(findTemporalBinary() ?? 'temporal', args, { maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout) as unknown;
}

/** Names of processes, queues and files become words; payloads that are in the store come back into the history. */
async function plain(value: unknown, store: Store, key = ''): Promise<unknown> {
  if (typeof value === 'string') return key === 'identity' || key === 'stackTrace' ? 'recorded' : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Promise.all(value.map((item) => plain(item, store)));
  if (key === 'taskQueue' || key === 'stickyTaskQueue') return { name: 'recorded', kind: 'TASK_QUEUE_KIND_NORMAL' };
  const source = (isPayload(value) ? await inlined(value, store) : value) as Record<string, unknown>;
  const entries = Object.entries(source).map(async ([name, item]) => [name, await plain(item, store, name)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

interface PayloadJson {
  metadata: Record<string, string>;
  data: string;
}

function isPayload(value: object): value is PayloadJson {
  return 'metadata' in value && 'data' in value && typeof value.data === 'string';
}

async function inlined({ metadata, data }: PayloadJson, store: Store): Promise<PayloadJson> {
  const entries = Object.entries(metadata).map(([name, text]) => [name, Buffer.from(text, 'base64')] as const);
  const payload = { metadata: Object.fromEntries(entries), data: Buffer.from(data, 'base64') };
  const [decoded] = await new ClaimCheckCodec(store).decode([payload]);
  const base64 = (bytes: Uint8Array | null | undefined) => Buffer.from(bytes ?? []).toString('base64');
  const decodedEntries = Object.entries(decoded?.metadata ?? {}).map(([name, bytes]) => [name, base64(bytes)]);
  return { metadata: Object.fromEntries(decodedEntries) as Record<string, string>, data: base64(decoded?.data) };
}

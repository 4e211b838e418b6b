import { Client, Connection, type WorkflowHandle } from '@temporalio/client';

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;
export type HistoryEvent = NonNullable<History['events']>[number];

interface Encodable {
  constructor: { encode(event: HistoryEvent): { finish(): Uint8Array } };
}

/** A workflow's history with what each event weighs. */
export interface WeighedEvent {
  event: HistoryEvent;
  /** Bytes of its protobuf encoding, which is what the server stores. */
  bytes: number;
  /** Milliseconds since 1970, by the server's clock. */
  at: number;
}

/** The events of a workflow, over all of its runs if it was continued as new. */
export async function readHistory(address: string, workflowId: string): Promise<WeighedEvent[]> {
  const connection = await Connection.connect({ address });
  try {
    const client = new Client({ connection });
    const events: HistoryEvent[] = [];
    let runId = (await firstRunId(client, workflowId)) ?? undefined;
    while (runId !== undefined) {
      const history = await client.workflow.getHandle(workflowId, runId).fetchHistory();
      events.push(...(history.events ?? []));
      runId = events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? undefined;
    }
    return events.map((event) => ({ event, bytes: bytesOf(event), at: timeOf(event) }));
  } finally {
    await connection.close();
  }
}

/**
 * Cuts a history into the turns of a run: each begins with the scheduling of its model effect and ends before the next
 * one's. The last turn, which has no tool and ends the run, is left out.
 */
export function fullTurns(events: readonly WeighedEvent[], runId: string): WeighedEvent[][] {
  const starts = events.flatMap(({ event }, index) => (modelEffectOf(event, runId) ? [index] : []));
  return starts.slice(0, -1).map((start, index) => events.slice(start, starts[index + 1]));
}

/** Events between the scheduling of a run's first model effect and its end: what the workflow learned of its stream. */
export function eventsWhileStreaming(events: readonly WeighedEvent[], runId: string): number {
  const start = events.findIndex(({ event }) => modelEffectOf(event, runId));
  const scheduledId = String(events[start]?.event.eventId);
  const end = events.findIndex(
    ({ event }) => String(event.activityTaskCompletedEventAttributes?.scheduledEventId) === scheduledId,
  );
  if (start < 0 || end < 0) throw new Error(`the history has no reply of run ${runId}`);
  // But for the one that says that the effect was begun.
  return events.slice(start + 1, end).filter(({ event }) => !event.activityTaskStartedEventAttributes).length;
}

export function bytesIn(events: readonly WeighedEvent[]): number {
  return events.reduce((sum, { bytes }) => sum + bytes, 0);
}

function modelEffectOf(event: HistoryEvent, runId: string): boolean {
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (scheduled?.activityType?.name !== 'streamAssistantResponse') return false;
  const [input] = scheduled.input?.payloads ?? [];
  const text = Buffer.from(input?.data ?? '').toString('utf8');
  // A claim-checked input names its run in the store alone; it is the first turn of a run with a large prompt.
  return text.includes(`"runId":"${runId}"`);
}

async function firstRunId(client: Client, workflowId: string): Promise<string | null | undefined> {
  const { raw } = await client.workflow.getHandle(workflowId).describe();
  return raw.workflowExecutionInfo?.firstRunId;
}

function bytesOf(event: HistoryEvent): number {
  return (event as unknown as Encodable).constructor.encode(event).finish().length;
}

function timeOf({ eventTime }: HistoryEvent): number {
  return Number(eventTime?.seconds ?? 0) * 1_000 + (eventTime?.nanos ?? 0) / 1e6;
}

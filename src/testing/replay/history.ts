import type { Payload, PayloadCodec } from '@temporalio/common';
import { inputDigestKey } from '../../activities/input-digest.ts';
import { EverturnError } from '../../common/errors.ts';
import { claimEncoding } from '../../temporal/claim-check.ts';
import type { ScheduledEffect, SessionHistory } from './types.ts';

/** The parts of a history that are looked at, which the JSON and the client's objects have alike. */
export interface KnownHistory {
  events: HistoryEvent[];
}

interface HistoryEvent {
  workflowExecutionStartedEventAttributes?: unknown;
  activityTaskScheduledEventAttributes?: {
    activityId: string;
    activityType: { name: string };
    input?: Payloads | null;
  } | null;
  markerRecordedEventAttributes?: { markerName: string; details?: Record<string, Payloads> | null } | null;
}

interface Payloads {
  payloads?: RecordedPayload[] | null;
}

interface RecordedPayload {
  metadata?: Record<string, Bytes> | null;
  data?: Bytes | null;
}

/** In JSON they are in base64. */
type Bytes = string | Uint8Array;

const localMarker = 'core_local_activity';

/** @throws EverturnError `invalid_argument` */
export function checkHistory(history: SessionHistory, hasStore: boolean): KnownHistory {
  const { events } = history as Partial<KnownHistory>;
  if (!Array.isArray(events) || events.length === 0) {
    throw invalid('This is no history: give the parsed JSON of `temporal workflow show -o json`, which has `events`.');
  }
  if (!events[0]?.workflowExecutionStartedEventAttributes) {
    throw invalid('The history does not begin with the start of a workflow: give the whole of it.');
  }
  if (!hasStore && hasClaims(history)) {
    throw invalid('Payloads of this history are in the store of the session: give it as `store`.');
  }
  return { events };
}

/** Whether a payload is in the store, and its digest here. */
function hasClaims(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return false;
  const { encoding } = (value as RecordedPayload).metadata ?? {};
  if (encoding !== undefined && textOf(encoding) === claimEncoding) return true;
  return Object.values(value).some(hasClaims);
}

function invalid(message: string): EverturnError {
  return new EverturnError('invalid_argument', message);
}

/** The effects of a history with what they were given, by their number. */
export async function recordedEffects(
  { events }: KnownHistory,
  codecs: readonly PayloadCodec[],
): Promise<Map<number, ScheduledEffect>> {
  const effects = new Map<number, ScheduledEffect>();
  for (const event of events) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled) {
      const seq = Number(scheduled.activityId);
      effects.set(seq, { seq, effect: scheduled.activityType.name, input: await decoded(scheduled.input, codecs) });
    }
    const marker = event.markerRecordedEventAttributes;
    if (marker?.markerName === localMarker) {
      const data = (await decoded(marker.details?.data, codecs)) as { seq: number; activity_type: string };
      const result = (await decoded(marker.details?.result, codecs)) as { [inputDigestKey]?: string } | undefined;
      const digest = result?.[inputDigestKey];
      effects.set(data.seq, {
        seq: data.seq,
        effect: data.activity_type,
        ...(digest === undefined ? {} : { digest }),
      });
    }
  }
  return effects;
}

async function decoded(payloads: Payloads | null | undefined, codecs: readonly PayloadCodec[]): Promise<unknown> {
  const [first] = payloads?.payloads ?? [];
  if (first === undefined) return undefined;
  const metadata = Object.entries(first.metadata ?? {}).map(([key, value]) => [key, bytes(value)] as const);
  let payload: Payload = { metadata: Object.fromEntries(metadata), data: bytes(first.data ?? '') };
  for (const codec of codecs) [payload = payload] = await codec.decode([payload]);
  const text = textOf(payload.data ?? '');
  return text === '' ? undefined : (JSON.parse(text) as unknown);
}

function bytes(value: Bytes): Uint8Array {
  return typeof value === 'string' ? Buffer.from(value, 'base64') : value;
}

function textOf(value: Bytes): string {
  return Buffer.from(bytes(value)).toString('utf8');
}

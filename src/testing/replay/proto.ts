import { createRequire } from 'node:module';
import type { SessionHistory } from './types.ts';

interface Proto {
  temporal: { api: { history: { v1: { History: { fromObject(value: object): object } } } } };
}

/**
 * A history as Temporal's worker takes it. Its own reading of JSON (`historyFromJSON`) fails with "type must be a Type"
 * wherever npm has put two copies of protobufjs; the messages themselves can be made from plain objects.
 */
export function toProto(history: SessionHistory): object {
  const [first] = (history as { events: { eventId?: unknown }[] }).events;
  if (typeof first?.eventId !== 'string') return history;
  const ownRequire = createRequire(import.meta.url);
  // A dependency of the worker, and not of this package.
  const proto = createRequire(ownRequire.resolve('@temporalio/worker'))('@temporalio/proto') as Proto;
  return proto.temporal.api.history.v1.History.fromObject(readTimes(history) as object);
}

const isTime = /Time$/;
const isDuration = /(Timeout|Backoff|Interval|Delay|Duration)$/;

/** Times and durations are texts in JSON, and messages of their own beyond it. */
function readTimes(value: unknown, key = ''): unknown {
  if (typeof value === 'string') {
    if (isTime.test(key)) return timestampOf(value);
    return isDuration.test(key) && value.endsWith('s') ? durationOf(value) : value;
  }
  if (Array.isArray(value)) return value.map((item) => readTimes(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, readTimes(item, name)]));
}

function timestampOf(text: string): { seconds: number; nanos: number } {
  const fraction = /\.(\d+)Z$/.exec(text)?.[1] ?? '';
  return { seconds: Math.floor(Date.parse(text) / 1_000), nanos: Number(fraction.padEnd(9, '0').slice(0, 9)) };
}

function durationOf(text: string): { seconds: number; nanos: number } {
  const [seconds = '0', fraction = ''] = text.slice(0, -1).split('.');
  return { seconds: Number(seconds), nanos: Number(fraction.padEnd(9, '0')) };
}

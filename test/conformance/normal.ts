/** Messages and values without what differs from one run of the same program to the next: ids, times, durations. */

export type Plain = null | boolean | number | string | Plain[] | { [key: string]: Plain };

const volatileKeys: ReadonlySet<string> = new Set(['timestamp', 'at', 'durationMs', 'entryId']);

/** Plain data: what JSON cannot hold is gone, so is every volatile field, and keys are sorted. */
export function plain(value: unknown): Plain {
  return sorted(JSON.parse(JSON.stringify(value ?? null)) as Plain);
}

function sorted(value: Plain): Plain {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const keys = Object.keys(value).filter((key) => !volatileKeys.has(key));
  return Object.fromEntries(keys.sort().map((key) => [key, sorted(value[key] as Plain)]));
}

export function same(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

/** A message of a transcript as it is compared. */
export interface PlainMessage {
  role: string;
  content?: Plain;
  stopReason?: string;
  errorMessage?: string;
  toolCallId?: string;
  [key: string]: Plain | undefined;
}

export function plainMessage(message: unknown): PlainMessage {
  return plain(message) as unknown as PlainMessage;
}

/**
 * How long the server asks to wait, in milliseconds from now: `retry-after-ms`, `retry-after` as seconds or as an HTTP
 * date, Google's `retryDelay` in the error body, or OpenAI's "try again in 1.5s" in the error text (the only form that
 * errors inside a stream have). Undefined when it says nothing readable; a date in the past gives 0. Not capped.
 */
export function retryAfterMs(headers: Headers | undefined, text: string, now = Date.now()): number | undefined {
  return (
    fromNumber(headers?.get('retry-after-ms'), 1) ??
    fromNumber(headers?.get('retry-after'), 1000) ??
    fromDate(headers?.get('retry-after'), now) ??
    fromText(text)
  );
}

function fromNumber(value: string | null | undefined, unitMs: number): number | undefined {
  const trimmed = value?.trim();
  if (trimmed === undefined || !/^\d+(\.\d+)?$/.test(trimmed)) return undefined;
  return Math.ceil(Number(trimmed) * unitMs);
}

function fromDate(value: string | null | undefined, now: number): number | undefined {
  // Every HTTP date begins with a weekday; Date.parse alone would take "5 apples" for the year 2005.
  if (value === null || value === undefined || !/^\s*(mon|tue|wed|thu|fri|sat|sun)/i.test(value)) return undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

function fromText(text: string): number | undefined {
  const google = /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/.exec(text)?.[1];
  if (google !== undefined) return Math.ceil(Number(google) * 1000);
  const match = /try again in (?:(\d+)m(?!s))?\s*(?:(\d+(?:\.\d+)?)(ms|s))?/i.exec(text);
  if (match === null || (match[1] === undefined && match[2] === undefined)) return undefined;
  return Math.ceil(Number(match[1] ?? 0) * 60_000 + Number(match[2] ?? 0) * (match[3] === 'ms' ? 1 : 1000));
}

import type { LogRecord } from '../../src/common/events.ts';

/** Events that only tell how something went: after a crash they may stand there once more, or say "second attempt". */
const notes: readonly string[] = ['hook', 'after_provider_response'];

const times: readonly string[] = ['timestamp', 'durationMs'];
/** Temporal's run id, in the key of `session_open`; its tail, in ids of queued messages. */
const chance = /(?<="open\/)[0-9a-f-]{36}|(?<=(?:m|run|set|queue|rejected)[-/])[0-9a-f]{12}(?=[-/])/g;

/**
 * What of a log must be the same byte for byte when a run is disturbed: all records in their order with key, place and
 * body, but for times and for what ids have from Temporal's chance. `unknown`: calls whose outcome a
 * crash made unknown, as "TURN/INDEX": what they gave is left out. The ends of one parallel batch come in any order.
 */
export function normalLog(log: readonly LogRecord[], unknown: ReadonlySet<string> = new Set()): string[] {
  const lines = log
    .filter(({ body }) => body.kind !== 'event' || !notes.includes(body.event.type))
    .map((record) => ({ end: isEnd(record), text: textOf(record, unknown) }));
  for (let first = 0; first < lines.length; first++) {
    if (lines[first]?.end !== true) continue;
    const after = lines.findIndex(({ end }, index) => index > first && !end);
    const ends = lines.slice(first, after < 0 ? undefined : after);
    lines.splice(first, ends.length, ...ends.sort(byText));
    first += ends.length;
  }
  return lines.map(({ text }) => text);
}

/** Calls whose outcome is unknown in this log, as "TURN/INDEX". */
export function unknownCalls(log: readonly LogRecord[]): Set<string> {
  return new Set(
    log.flatMap(({ key, body }) =>
      body.kind === 'event' && body.event.type === 'tool_execution_end' && body.event.outcome === 'unknown'
        ? [callOf(key)]
        : [],
    ),
  );
}

/** "r1/0/2/end", the key of an event, and "r1/0/2", the id of a result, name call 2 of turn 0. */
function callOf(key: string): string {
  return key.split('/').slice(1, 3).join('/');
}

function isEnd({ body }: LogRecord): boolean {
  return body.kind === 'event' && body.event.type === 'tool_execution_end';
}

function byText(left: { text: string }, right: { text: string }): number {
  return left.text < right.text ? -1 : 1;
}

function textOf({ key, runId, turn, body }: LogRecord, unknown: ReadonlySet<string>): string {
  const kept = isOf(body, key, unknown) ? { kind: body.kind, of: 'a call with unknown outcome' } : body;
  const text = JSON.stringify({ key, runId, turn, body: kept }, (name, value) => (times.includes(name) ? 0 : value));
  return text.replace(chance, 'CHANCE');
}

function isOf(body: LogRecord['body'], key: string, unknown: ReadonlySet<string>): boolean {
  if (body.kind === 'event') return body.event.type === 'tool_execution_end' && unknown.has(callOf(key));
  const { entry } = body;
  return entry.type === 'message' && entry.message.role === 'toolResult' && unknown.has(callOf(entry.id));
}

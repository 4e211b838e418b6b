import type { Plain } from '../normal.ts';
import type { Observation, SeenEvent } from '../observation.ts';

export interface Message {
  role: string;
  content?: Plain;
  stopReason?: string;
  errorMessage?: string;
  toolCallId?: string;
  api?: string;
}

/** Calls `change` for every message of an observation, wherever it was seen. */
export function eachMessage(side: Observation, change: (message: Message) => void): void {
  walk(side, (value) => {
    if (isMessage(value)) change(value);
  });
}

/** Calls `change` for every list of messages of an observation: transcripts, requests, what hooks saw. */
export function eachList(side: Observation, change: (messages: Message[]) => void): void {
  walk(side, (value) => {
    if (Array.isArray(value) && value.length > 0 && value.every(isMessage)) change(value as Message[]);
  });
}

function walk(value: unknown, visit: (value: unknown) => void): void {
  visit(value);
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) walk(inner, visit);
}

function isMessage(value: unknown): value is Message {
  return typeof value === 'object' && value !== null && typeof (value as { role?: unknown }).role === 'string';
}

export function callIds(message: Message): string[] {
  const content = Array.isArray(message.content) ? (message.content as { type?: string; id?: string }[]) : [];
  return content.flatMap(({ type, id }) => (type === 'toolCall' && id !== undefined ? [id] : []));
}

export function messageOf(event: SeenEvent): Message | undefined {
  return event.type === 'message' ? (event.message as unknown as Message) : undefined;
}

/** The events of each run, from what comes before its agent_start on; what is left comes last. */
export function byRun(events: readonly SeenEvent[]): SeenEvent[][] {
  const runs: SeenEvent[][] = [[]];
  for (const event of events) {
    const current = runs.at(-1) as SeenEvent[];
    current.push(event);
    if (event.type === 'agent_end') runs.push([]);
  }
  return runs;
}

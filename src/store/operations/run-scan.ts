import type { LogEvent } from '../../common/events.ts';
import type { Db, RunsRow } from '../schema.ts';
import { recordsOfRun } from './log.ts';

interface OpenTool {
  key: string;
  turn: number | null;
  toolCallId: string;
  toolName: string;
}

/** What of a run has begun in the log, and what of it has no end there. */
export interface RunScan {
  agentOpen: boolean;
  /** `agent_end`, when the log has it although the run's row does not know. */
  agentEnd: Extract<LogEvent, { type: 'agent_end' }> | undefined;
  settledOpen: boolean;
  /** Turns with `turn_start` and without `turn_end`, in order. */
  openTurns: Set<number | null>;
  /** Calls whose `tool_execution_start` is there, by `startKey`. */
  startedTools: Set<string>;
  openTools: OpenTool[];
  /** Last assistant entry of each turn. */
  assistants: Map<number | null, string>;
  toolResults: Map<number | null, string[]>;
  /** Messages that waited for the next run, by the last `queue_update`. */
  nextTurnCount: number;
}

/** Providers reuse call ids, so a call is known by its turn as well. */
export function startKey(turn: number | null, toolCallId: string): string {
  return `${turn ?? ''}/${toolCallId}`;
}

export async function scanRun(db: Db, run: RunsRow): Promise<RunScan> {
  const scan: RunScan = {
    agentOpen: false,
    agentEnd: undefined,
    settledOpen: false,
    openTurns: new Set(),
    startedTools: new Set(),
    openTools: [],
    assistants: new Map(),
    toolResults: new Map(),
    nextTurnCount: 0,
  };
  for await (const record of recordsOfRun(db, run.session_id, run.run_id, run.first_offset)) {
    if (record.body.kind === 'event') {
      scanEvent(scan, record.key, record.turn, record.body.event);
      continue;
    }
    const entry = record.body.entry;
    if (entry.type !== 'message') continue;
    if (entry.message.role === 'assistant') scan.assistants.set(record.turn, entry.id);
    if (entry.message.role !== 'toolResult') continue;
    scan.toolResults.set(record.turn, [...(scan.toolResults.get(record.turn) ?? []), entry.id]);
  }
  return scan;
}

function scanEvent(scan: RunScan, key: string, turn: number | null, event: LogEvent): void {
  switch (event.type) {
    case 'agent_start':
      scan.agentOpen = true;
      scan.settledOpen = true;
      break;
    case 'agent_end':
      scan.agentOpen = false;
      scan.agentEnd = event;
      break;
    case 'settled':
      scan.settledOpen = false;
      break;
    case 'turn_start':
      scan.openTurns.add(turn);
      break;
    case 'turn_end':
      scan.openTurns.delete(turn);
      break;
    case 'queue_update':
      scan.nextTurnCount = event.nextTurn.length;
      break;
    case 'tool_execution_start':
      scan.startedTools.add(startKey(turn, event.toolCallId));
      scan.openTools.push({ key, turn, toolCallId: event.toolCallId, toolName: event.toolName });
      break;
    case 'tool_execution_end': {
      const at = scan.openTools.findIndex((tool) => tool.turn === turn && tool.toolCallId === event.toolCallId);
      if (at >= 0) scan.openTools.splice(at, 1);
      break;
    }
  }
}

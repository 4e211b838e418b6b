import type { AgentMessage, Usage } from './messages.ts';

/** Thinking levels of pi; `off` sends no reasoning option. */
export const thinkingLevels = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;
export type ThinkingLevel = (typeof thinkingLevels)[number];

interface EntryBase {
  /** Unique in the session. Entries that a run makes have ids derived from run and turn, so a retry writes the same. */
  id: string;
  /** The entry before it on its branch; null for the first. Given by the store: the leaf at the time of the append. */
  parentId: string | null;
  /** ISO 8601, UTC. */
  timestamp: string;
}

/** A node of the session tree, in pi's shapes (pi-semantics §3.1), so that a session can leave as pi JSONL. */
export type SessionTreeEntry = EntryBase &
  (
    | { type: 'message'; message: AgentMessage }
    | { type: 'model_change'; provider: string; modelId: string }
    | { type: 'thinking_level_change'; thinkingLevel: ThinkingLevel }
    | { type: 'active_tools_change'; activeToolNames: string[] }
    | {
        type: 'compaction';
        summary: string;
        firstKeptEntryId?: string;
        tokensBefore: number;
        retainedTail?: AgentMessage[];
        details?: unknown;
        usage?: Usage;
        fromHook?: boolean;
      }
    | { type: 'branch_summary'; fromId: string; summary: string; details?: unknown; usage?: Usage; fromHook?: boolean }
    | { type: 'custom'; customType: string; data?: unknown }
    | { type: 'custom_message'; customType: string; content: unknown; details?: unknown; display: boolean }
    | { type: 'label'; targetId: string; label?: string }
    | { type: 'session_info'; name?: string }
    | { type: 'leaf'; targetId: string | null }
  );

/** An entry before the store has given it its parent. */
export type NewEntry = SessionTreeEntry extends infer Entry
  ? Entry extends SessionTreeEntry
    ? Omit<Entry, 'parentId'>
    : never
  : never;

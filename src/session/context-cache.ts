import type { SessionTreeEntry } from '../common/entries.ts';
import type { AgentMessage } from '../common/messages.ts';
import type { Store } from '../store/types.ts';

/** A message of the context with the entry that it comes from. */
export interface ContextItem {
  entryId: string;
  message: AgentMessage;
}

interface Cached {
  leaf: string;
  items: ContextItem[];
}

/**
 * The context of each session's leaf, kept between turns so that a long conversation is not read again each time. Only a
 * cache: what it gives is the path of the leaf that was asked for, whatever other workers have appended.
 */
export class ContextCache {
  private readonly store: Pick<Store, 'readPath'>;
  private readonly maxItems: number;
  private readonly cached = new Map<string, Cached>();
  private size = 0;

  /** @param maxItems messages kept over all sessions; the least recently used sessions go first */
  constructor(store: Pick<Store, 'readPath'>, maxItems = 100_000) {
    this.store = store;
    this.maxItems = maxItems;
  }

  /** Messages from the root to the leaf. The list is the caller's own, the messages are shared and frozen: a hook returns changed copies. */
  async read(sessionId: string, leaf: string | null): Promise<ContextItem[]> {
    if (leaf === null) return [];
    const known = this.cached.get(sessionId);
    if (known?.leaf === leaf) return [...known.items];
    const path = await this.store.readPath(sessionId, leaf, known?.leaf);
    const added = contextItems(path.entries);
    const items = path.complete || known === undefined ? added : [...known.items, ...added];
    this.keep(sessionId, { leaf, items });
    return [...items];
  }

  /** Adds a message that was just appended behind `after`, if that is the leaf that is kept. */
  extend(sessionId: string, after: string | null, entryId: string, message: AgentMessage): void {
    const known = this.cached.get(sessionId);
    if (known === undefined || known.leaf !== after) return;
    // As the store gives it back: what JSON cannot hold is gone.
    const stored = deepFreeze(JSON.parse(JSON.stringify(message)) as AgentMessage);
    this.keep(sessionId, { leaf: entryId, items: [...known.items, { entryId, message: stored }] });
  }

  /** A message near the end of what is kept, without asking the store. */
  recent(sessionId: string, entryId: string): AgentMessage | undefined {
    return this.cached
      .get(sessionId)
      ?.items.slice(-32)
      .find((item) => item.entryId === entryId)?.message;
  }

  private keep(sessionId: string, entry: Cached): void {
    this.size += entry.items.length - (this.cached.get(sessionId)?.items.length ?? 0);
    this.cached.delete(sessionId);
    this.cached.set(sessionId, entry);
    for (const [oldest, { items }] of this.cached) {
      if (this.size <= this.maxItems || oldest === sessionId) break;
      this.cached.delete(oldest);
      this.size -= items.length;
    }
  }
}

/** pi's context of a path (pi-semantics §3.4): messages as they are; changes of settings add nothing. */
function contextItems(entries: readonly SessionTreeEntry[]): ContextItem[] {
  return entries.flatMap((entry) =>
    entry.type === 'message' ? [{ entryId: entry.id, message: deepFreeze(entry.message) }] : [],
  );
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const item of Object.values(value)) deepFreeze(item);
  return Object.freeze(value);
}

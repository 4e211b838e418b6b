import type { AgentClient, SessionHandle } from '../client/index.ts';
import { EverturnError } from '../common/errors.ts';
import { openStore } from '../store/index.ts';
import type { SessionRow, Store } from '../store/types.ts';
import { requireStore, type SessionFlags, type StoreFlags, settingsOf, storePath } from './settings.ts';

/** For commands that only read: they need neither a server nor a worker. */
export async function withStore<Result>(flags: StoreFlags, work: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await openStore({ path: requireStore(storePath(flags)) });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

export async function withClient<Result>(
  flags: SessionFlags,
  work: (client: AgentClient) => Promise<Result>,
): Promise<Result> {
  const settings = settingsOf(flags);
  requireStore(settings.store);
  // Loaded here: commands that only read the store do not wait for Temporal's client.
  const { AgentClient } = await import('../client/index.ts');
  const client = await AgentClient.connect({ ...settings, answerTimeoutMs: (flags.wait ?? 30) * 1_000 });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** The session's row. @throws EverturnError `not_found` */
export async function requireSession(store: Store, sessionId: string): Promise<SessionRow> {
  const row = await store.readSession(sessionId);
  if (row !== undefined) return row;
  throw new EverturnError(
    'not_found',
    `There is no session "${sessionId}" in this store. "everturn sessions" lists them.`,
    { details: { sessionId } },
  );
}

/** A handle on a session that is there: its agent's name stands in the store. */
export async function knownSession(
  client: AgentClient,
  sessionId: string,
): Promise<{ row: SessionRow; session: SessionHandle }> {
  const row = await requireSession(client.store, sessionId);
  return { row, session: client.session(sessionId, { agent: row.agent }) };
}

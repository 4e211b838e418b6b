import type { AgentClient } from 'everturn/client';
import { type Queue, withClient } from '../lib.ts';
import { endWithParent, ownConfig, tell } from '../processes.ts';
import { readChunk } from './paced.ts';

// The reader process of the benchmark `stream`: it follows sessions as a user interface would.

export interface ReaderConfig extends Queue {
  sessionIds: string[];
  /** The run of each session whose chunks count, and how many it has. */
  runId: string;
  chunks: number;
}

export interface ReaderResult {
  /** Milliseconds from the moment a chunk was handed over to the moment it was read. */
  delays: number[];
  gaps: number;
  duplicates: number;
}

const config = ownConfig<ReaderConfig>();

async function follow(client: AgentClient, sessionId: string, result: ReaderResult): Promise<void> {
  let next = 0;
  for await (const event of client.session(sessionId, { agent: 'bench' }).events()) {
    if (event.runId !== undefined && event.runId !== config.runId) continue;
    if (event.type === 'message_update' && event.delta.type === 'text_delta') {
      const { n, at } = readChunk(event.delta.delta);
      if (event.entryId.startsWith(`${config.runId}/`)) {
        result.delays.push(Date.now() - at);
        if (n > next) result.gaps += n - next;
        else if (n < next) result.duplicates += 1;
        next = Math.max(next, n + 1);
      }
    }
    if (event.type === 'agent_end') break;
  }
  result.gaps += config.chunks - next;
}

endWithParent();
await withClient(config, async (client) => {
  const result: ReaderResult = { delays: [], gaps: 0, duplicates: 0 };
  const following = config.sessionIds.map((sessionId) => follow(client, sessionId, result));
  tell({ ready: true });
  await Promise.all(following);
  tell({ result });
});
process.disconnect();

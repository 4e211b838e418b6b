import { join } from 'node:path';
import { writeWorkflowBundle } from 'everturn/worker';
import { eventsWhileStreaming, readHistory } from './history.ts';
import { type Figures, newQueue, percentile, round, withClient, withServer } from './lib.ts';
import { startProcess } from './processes.ts';
import { pacedPrompt } from './stream/paced.ts';
import type { ReaderConfig, ReaderResult } from './stream/reader-main.ts';
import type { WorkerConfig } from './worker-main.ts';

const workerProgram = new URL('./worker-main.ts', import.meta.url);
const readerProgram = new URL('./stream/reader-main.ts', import.meta.url);
const runId = 'streamed';

/**
 * Live streams from a worker process to a reader in another process, by way of the store: how late a chunk is, whether any
 * is missing or comes twice, and what chunks cost in workflow history.
 */
export async function stream(options: { sessions: number; rate: number; seconds: number }): Promise<Figures> {
  const chunks = options.rate * options.seconds;
  return withServer({}, async (place) => {
    const queue = newQueue(place);
    const workflowBundle = await writeWorkflowBundle(join(place.folder, 'workflows.cjs'));
    const worker = await startProcess(workerProgram, { ...queue, workflowBundle } satisfies WorkerConfig);
    return withClient(queue, async (client) => {
      const sessionIds = Array.from({ length: options.sessions }, (_, index) => `${queue.taskQueue}-${index}`);
      const sessions = sessionIds.map((sessionId) => client.session(sessionId, { agent: 'bench' }));
      // Sessions that are open, and code that is warm.
      await Promise.all(sessions.map((session) => session.run(pacedPrompt(20, options.rate), { runId: 'warm' })));
      const reader = await startProcess(readerProgram, { ...queue, sessionIds, runId, chunks } satisfies ReaderConfig);
      await Promise.all(sessions.map((session) => session.run(pacedPrompt(chunks, options.rate), { runId })));
      const { delays, gaps, duplicates } = await reader.result<ReaderResult>();
      const histories = await Promise.all(sessionIds.map((sessionId) => readHistory(queue.address, sessionId)));
      await Promise.all([worker.stop(), reader.stop()]);
      const added = histories.reduce((sum, history) => sum + eventsWhileStreaming(history, runId), 0);
      return {
        p50Ms: percentile(delays, 0.5),
        p99Ms: percentile(delays, 0.99),
        gaps,
        duplicates,
        historyEventsPer1000Chunks: round((added * 1_000) / (chunks * options.sessions)),
      };
    });
  });
}

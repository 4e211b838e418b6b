import type { liveReads, liveWrites, logReads, logWrites } from '../operations/index.ts';
import type { VerifyProgress } from '../operations/verify.ts';
import type { Store } from '../types.ts';
import type { ThreadHost } from './thread-host.ts';

type Operations = Record<string, (db: never, ...args: never[]) => Promise<unknown>>;
type ArgsOf<Operation> = Operation extends (db: never, ...args: infer Args) => unknown ? Args : never;
type ResultOf<Operation> = Operation extends (...args: never[]) => Promise<infer Result> ? Result : never;

type Caller<Table extends Operations> = <Name extends keyof Table & string>(
  name: Name,
  ...args: ArgsOf<Table[Name]>
) => Promise<ResultOf<Table[Name]>>;

/** A store over its two threads. */
export function storeOver(logThread: ThreadHost, liveThread: ThreadHost): Store {
  const write = callerOf<typeof logWrites>(logThread);
  const read = callerOf<typeof logReads & typeof liveReads>(liveThread);
  const commit = callerOf<Pick<typeof logWrites, 'commit'>>(logThread, 'behind');
  const append = callerOf<Pick<typeof liveWrites, 'appendDeltas'>>(liveThread, 'deltas');
  const prune = callerOf<Omit<typeof liveWrites, 'appendDeltas'>>(liveThread);
  return {
    openSession: (request) => write('openSession', request),
    beginEffect: (fence, first) => write('beginEffect', fence, first),
    saveStep: (fence, name, outcome) => write('saveStep', fence, name, outcome),
    commit: (fence, parts) => commit('commit', fence, parts),
    saveProgress: (fence, entryId, index, progress) => write('saveProgress', fence, entryId, index, progress),
    addLateResult: (sessionId, entryId, index, late) => write('addLateResult', sessionId, entryId, index, late),
    requestAbort: (sessionId, runId) => write('requestAbort', sessionId, runId),
    putBlob: (digest, data) => write('putBlob', digest, data),

    readControls: (sessionIds) => read('readControls', sessionIds),
    readSession: (sessionId) => read('readSession', sessionId),
    listSessions: (options) => read('listSessions', options),
    readRun: (sessionId, runId) => read('readRun', sessionId, runId),
    readEndedRuns: (keys) => read('readEndedRuns', keys),
    listRuns: (sessionId) => read('listRuns', sessionId),
    readPath: (sessionId, leaf, afterEntryId) => read('readPath', sessionId, leaf, afterEntryId),
    readEntries: (sessionId, ids) => read('readEntries', sessionId, ids),
    readLog: (sessionId, fromOffset, limit) => read('readLog', sessionId, fromOffset, limit),
    findRecords: (sessionId, keys) => read('findRecords', sessionId, keys),
    readBatch: (sessionId, entryId) => read('readBatch', sessionId, entryId),
    readRequest: (sessionId, runId, turn) => read('readRequest', sessionId, runId, turn),
    countEffects: (sessionId, runId) => read('countEffects', sessionId, runId),
    getBlob: (digest) => read('getBlob', digest),
    verify: async (sessionId) => {
      let progress: VerifyProgress | undefined;
      for (;;) {
        const step = await read('verifyPage', sessionId, progress);
        if (step.state === 'ok') return { ok: true, length: step.length };
        if (step.state === 'wrong') return { ok: false, offset: step.offset, reason: step.reason };
        progress = step.progress;
      }
    },

    appendDeltas: async (deltas) => {
      if (deltas.length > 0) await append('appendDeltas', deltas);
    },
    readDeltas: (sessionId, afterSeq, limit) => read('readDeltas', sessionId, afterSeq, limit),
    lastDeltaSeq: (sessionId) => read('lastDeltaSeq', sessionId),
    pruneDeltas: async (beforeMs) => {
      let deleted = 0;
      for (let after = 0; ; ) {
        const old = await read('readOldDeltas', beforeMs, after);
        if (old === undefined) return deleted;
        const subjects = await read('selectEnded', old.subjects);
        if (subjects.length > 0) deleted += await prune('deleteDeltas', { ...old, subjects });
        after = old.upTo;
      }
    },

    close: async () => {
      // The readers go first, so that the log's connection is the last one and folds its write-ahead log into the file.
      await liveThread.close();
      await logThread.close();
    },
  };
}

function callerOf<Table extends Operations>(thread: ThreadHost, part?: 'deltas' | 'behind'): Caller<Table> {
  return (name, ...args) => thread.call(name, args, part) as Promise<ResultOf<Table[typeof name]>>;
}

import { addLateResult, readBatch } from './batches.ts';
import { beginEffect } from './begin.ts';
import { getBlob, putBlob } from './blobs.ts';
import { saveProgress } from './claims.ts';
import { commit } from './commit.ts';
import { readControls, requestAbort } from './controls.ts';
import { appendDeltas, deleteDeltas, lastDeltaSeq, readDeltas, readOldDeltas, selectEnded } from './deltas.ts';
import { countEffects } from './effects.ts';
import { readEntries, readPath } from './entries.ts';
import { saveStep } from './fence.ts';
import { findRecords, readLog } from './log.ts';
import { readRequest } from './requests.ts';
import { listRuns, readEndedRuns, readRun } from './runs.ts';
import { listSessions, openSession, readSession } from './session.ts';
import { verifyPage } from './verify.ts';

/** Each runs in a write transaction of the log. */
export const logWrites = {
  openSession,
  beginEffect,
  saveStep,
  commit,
  saveProgress,
  addLateResult,
  requestAbort,
  putBlob,
};

/** Each reads the log at one moment, and waits for no writer. */
export const logReads = {
  readControls,
  readSession,
  listSessions,
  readRun,
  readEndedRuns,
  listRuns,
  readPath,
  readEntries,
  readLog,
  findRecords,
  readBatch,
  readRequest,
  countEffects,
  verifyPage,
  getBlob,
  selectEnded,
};

export const liveWrites = { appendDeltas, deleteDeltas };

export const liveReads = { readDeltas, lastDeltaSeq, readOldDeltas };

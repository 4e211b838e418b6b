import type { EverturnError } from '../../common/errors.ts';
import type { Store } from '../../store/types.ts';

/**
 * The history of one workflow run: the JSON of `temporal workflow show -w SESSION -o json`, parsed, or what
 * `workflow.getHandle(SESSION).fetchHistory()` of Temporal's client gives.
 */
export type SessionHistory = object;

export interface ReplayOptions {
  /** The file with the policies, as for `createWorker`. Default: no policies. */
  workflowsPath?: string;
  /** Path of the store, or an open one (which stays open): it has the payloads from 32 KiB on. Default: none. */
  store?: string | Store;
}

export interface ReplayResult {
  name: string;
  /** Absent when everything is as it was. */
  error?: EverturnError;
}

/** One effect, as it was scheduled. */
export interface ScheduledEffect {
  /** Its number in the workflow run, from 1: Temporal's activity id. */
  seq: number;
  /** Its name, such as "streamAssistantResponse". */
  effect: string;
  /** What it was given; unknown for local effects of a history. */
  input?: unknown;
  /** Only of local effects: the digest of what it was given. */
  digest?: string;
}

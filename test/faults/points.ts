import type { Evidence } from '../support/evidence.ts';

/** Log of the points that a session passed, in the order of passing. */
export const pointsLog = 'points.log';
/** Holds the name of the point at which the session is to stand. Removed, it lets the session go on. */
export const faultFile = 'fault';
/** Says that a process stands there; only one ever does, the first that comes to it. */
export const standingFile = 'standing';
/** While it is in the folder of all sessions, the disk of the log is full. */
export const fullFile = 'full';
/** Lets a stream go on that stands between its tokens. */
export const streamFile = 'stream';

/**
 * A kill point: a place in a worker where it may die. Passing one leaves a line in the session's evidence, and the process
 * that first comes to the session's fault stands there until the file is gone, or the process is.
 */
export async function point(evidence: Evidence, name: string): Promise<void> {
  evidence.note(pointsLog, { what: name });
  if (!isFault(evidence, name)) return;
  evidence.put(standingFile);
  await evidence.untilGone(faultFile);
}

export function isFault(evidence: Evidence, name: string): boolean {
  return evidence.has(faultFile) && !evidence.has(standingFile) && evidence.text(faultFile) === name;
}

/** The points that a session passed, each once. */
export function pointsOf(evidence: Evidence): string[] {
  return [...new Set(evidence.read(pointsLog).map((line) => String(line.what)))];
}

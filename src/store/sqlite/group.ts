import type { EverturnError } from '../../common/errors.ts';
import type { Connection } from './connection.ts';
import { toStoreError } from './errors.ts';

/** One operation that waits for its turn. */
export interface Job<Schema> {
  /** True: it is answered when it survives this process, and is safe from the power's end with the next one that is not. */
  passing?: boolean;
  run(db: Connection<Schema>['db']): Promise<unknown>;
  resolve(value: unknown): void;
  reject(error: EverturnError): void;
}

type Answer = { value: unknown } | { error: EverturnError };

/**
 * Runs the jobs in one transaction, each under a savepoint, and answers them when it is committed: one fsync for all, and
 * none when all of them are passing.
 * A job that fails takes back its own writes alone (one that has the transaction to itself needs no savepoint). If the
 * commit fails, all fail. If SQLite gives up the transaction in the middle (a full disk), the job that met it fails and
 * the others run again without it. `beforeCommit` may block until what is to be readable first is.
 */
export async function runGroup<Schema>(
  connection: Connection<Schema>,
  jobs: readonly Job<Schema>[],
  beforeCommit: () => void = () => {},
): Promise<void> {
  let waiting = jobs;
  while (waiting.length > 0) {
    let answers: Map<Job<Schema>, Answer> | undefined;
    try {
      await connection.begin(waiting.every((job) => job.passing === true) ? 'process' : 'power');
      const attempt = await runInTransaction(connection, waiting);
      if ('culprit' in attempt) {
        attempt.culprit.reject(attempt.error);
        waiting = waiting.filter((job) => job !== attempt.culprit);
        continue;
      }
      // A job that failed alone has ended the transaction: it left nothing to commit.
      if (connection.inTransaction) {
        beforeCommit();
        connection.exec('commit');
      }
      answers = attempt.answers;
    } catch (error) {
      // Answers given in a transaction that is lost may rest on writes that are lost: a `fenced`, say.
      const failure = toStoreError(error, connection.file);
      endQuietly(connection);
      for (const job of waiting) job.reject(failure);
      return;
    }
    for (const [job, answer] of answers) {
      if ('error' in answer) job.reject(answer.error);
      else job.resolve(answer.value);
    }
    return;
  }
}

async function runInTransaction<Schema>(
  connection: Connection<Schema>,
  jobs: readonly Job<Schema>[],
): Promise<{ answers: Map<Job<Schema>, Answer> } | { culprit: Job<Schema>; error: EverturnError }> {
  const answers = new Map<Job<Schema>, Answer>();
  const shared = jobs.length > 1;
  for (const job of jobs) {
    if (shared) connection.exec('savepoint job');
    try {
      answers.set(job, { value: await job.run(connection.db) });
      if (shared) connection.exec('release job');
    } catch (cause) {
      const error = toStoreError(cause, connection.file);
      if (!connection.inTransaction) return { culprit: job, error };
      connection.exec(shared ? 'rollback to job' : 'rollback');
      if (shared) connection.exec('release job');
      answers.set(job, { error });
    }
  }
  return { answers };
}

/** After a failed commit the transaction may be over or not; what ends it must not hide why it failed. */
function endQuietly<Schema>(connection: Connection<Schema>): void {
  try {
    connection.rollback();
  } catch {
    // The next `begin` tells.
  }
}

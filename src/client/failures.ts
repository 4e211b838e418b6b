import {
  ServiceError,
  WorkflowExecutionAlreadyStartedError,
  WorkflowFailedError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { type ErrorInfo, EverturnError, errorText, isErrorCode, isEverturnError } from '../common/errors.ts';
import { unreachable } from '../temporal/address.ts';

// gRPC status codes.
const deadlineExceeded = 4;
const cancelled = 1;
const unavailable = 14;
const failedPrecondition = 9;

/** Any failure of a call to Temporal as a typed error that says what to do. */
export function toClientError(
  error: unknown,
  place: { address: string; taskQueue: string; sessionId: string },
): EverturnError {
  if (isEverturnError(error)) return error;
  if (error instanceof WorkflowUpdateFailedError || error instanceof WorkflowFailedError)
    return fromFailure(error.cause);
  if (isTimeout(error)) return noWorker(place.taskQueue, error);
  if (error instanceof WorkflowNotFoundError) {
    return new EverturnError(
      'not_found',
      `Session "${place.sessionId}" has no workflow running. A prompt starts one.`,
      { cause: error },
    );
  }
  if (grpcCode(error) === unavailable) return unreachable(place.address, error);
  if (grpcCode(error) === failedPrecondition && isTaskTrouble(error)) return noWorker(place.taskQueue, error);
  const cause =
    error instanceof WorkflowExecutionAlreadyStartedError || error instanceof ServiceError
      ? (error.cause ?? error)
      : error;
  return new EverturnError('internal', errorText(cause), { cause: error });
}

export function isNotFound(error: unknown): boolean {
  return error instanceof WorkflowNotFoundError;
}

export function isTimeout(error: unknown): boolean {
  if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) return true;
  const code = grpcCode(error);
  return code === deadlineExceeded || code === cancelled;
}

/** The server asks nobody while tasks of the session fail or run out, as after workers that died in them: that passes. */
function isTaskTrouble(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause.message.includes('Workflow Task in failed state')) return true;
  }
  return false;
}

/** The typed error that a workflow or an effect threw, out of Temporal's wrapping. */
function fromFailure(failure: unknown): EverturnError {
  for (let cause = failure; cause instanceof Error; cause = cause.cause) {
    if (!(cause instanceof ApplicationFailure)) continue;
    const [info] = (cause.details ?? []) as [ErrorInfo?];
    if (info !== undefined && isErrorCode(info.code)) {
      return new EverturnError(info.code, info.message, {
        cause: failure,
        ...(info.details === undefined ? {} : { details: info.details }),
      });
    }
  }
  return new EverturnError('internal', errorText(failure), { cause: failure });
}

function noWorker(taskQueue: string, cause: unknown): EverturnError {
  return new EverturnError(
    'no_worker',
    `No worker on task queue "${taskQueue}" answered in time. Start one ("everturn worker"); a prompt may be sent again with the same runId.`,
    { retryable: true, cause, details: { taskQueue } },
  );
}

function grpcCode(error: unknown): number | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { code?: unknown };
    if (typeof code === 'number') return code;
  }
  return undefined;
}

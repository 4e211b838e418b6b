import { ActivityFailure, ApplicationFailure, isCancellation } from '@temporalio/workflow';
import { type ErrorInfo, errorText, isErrorCode, isEverturnError, toErrorInfo } from '../common/errors.ts';

/** The typed error behind a failed effect. */
export function errorInfoOf(failure: unknown): ErrorInfo {
  if (isEverturnError(failure)) {
    return {
      code: failure.code,
      message: failure.message,
      ...(failure.details === undefined ? {} : { details: failure.details }),
    };
  }
  const cause = failure instanceof ActivityFailure ? failure.cause : failure;
  if (cause instanceof ApplicationFailure) {
    const [info] = (cause.details ?? []) as [ErrorInfo?];
    if (info !== undefined && isErrorCode(info.code)) return info;
    return { code: 'internal', message: cause.message };
  }
  return { code: 'internal', message: errorText(cause) };
}

/**
 * Whether an effect failed since its run is aborted. The failure may have another name: an effect hears of an abort by its
 * control record, before the signal is in the workflow, and one whose worker died when it was cancelled times out.
 */
export function failedByAbort(run: { aborting: boolean }, failure: unknown): boolean {
  return run.aborting || isCancellation(failure) || errorInfoOf(failure).code === 'cancelled';
}

/** A typed error as callers of an update get it. */
export function failureOf(info: ErrorInfo): ApplicationFailure {
  return ApplicationFailure.create({ type: info.code, message: info.message, nonRetryable: true, details: [info] });
}

export function refusing(check: () => void): void {
  try {
    check();
  } catch (error) {
    throw failureOf(toErrorInfo(error));
  }
}

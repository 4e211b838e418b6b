import { EverturnError, errorText, isEverturnError } from '../common/errors.ts';

/** Thrown by a hook whose error will not go away: it is not tried again. */
export class NonRetryableHookError extends Error {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'NonRetryableHookError';
  }
}

/** What a throw of a hook becomes when it ends the run: code `hook`, the hook's name in the details, the cause kept. */
export function normalizeHookError(hook: string, error: unknown): EverturnError {
  if (isEverturnError(error, 'hook')) return error;
  return new EverturnError('hook', `Hook ${hook} failed: ${errorText(error)}`, { cause: error, details: { hook } });
}

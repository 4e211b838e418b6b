import { isEverturnError } from '../../common/errors.ts';
import type { Commit, RequestRecord } from '../../store/types.ts';
import type { Effect } from '../effect.ts';

/** A reply that is quicker takes the request along into its own transaction. */
const keepAfterMs = 100;

/**
 * Keeps what the model was given while it replies. A retry sends what is kept; one that finds nothing, since the worker
 * died within the first moments, makes the same from what its hooks have answered. A writer that is shut out by then
 * breaks the request off.
 */
export class RequestKeeper {
  private readonly request: RequestRecord;
  private readonly timer: NodeJS.Timeout;
  private keeping: Promise<unknown> | undefined;

  constructor(effect: Effect, request: RequestRecord) {
    this.request = request;
    this.timer = setTimeout(() => {
      this.keeping = effect.commitAside({ request });
      this.keeping.catch((error: unknown) => {
        if (isEverturnError(error, 'fenced')) effect.lose();
      });
    }, keepAfterMs);
  }

  /** The request came to nothing: there is no reply that it could stand beside. */
  cancel(): void {
    clearTimeout(this.timer);
  }

  /**
   * @returns what the reply's own commit has to carry
   * @throws what kept the request from being kept
   */
  async end(): Promise<Pick<Commit, 'request'>> {
    clearTimeout(this.timer);
    if (this.keeping === undefined) return { request: this.request };
    await this.keeping;
    return {};
  }
}

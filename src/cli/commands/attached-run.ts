import type { SessionHandle } from '../../client/index.ts';
import type { PromptAnswer } from '../../common/signals.ts';
import { EventWriter } from '../event-writer.ts';
import { exitCodes } from '../failure.ts';
import type { Output } from '../output.ts';
import { exitCodeOfSignal, onEndSignals } from '../signals.ts';
import { usageText } from '../transcript/lines.ts';
import type { RunEnd } from './follow-run.ts';

/** One run and the person in front of it. First Ctrl-C: the run is aborted. Second, or SIGTERM: the person leaves, it goes on. */
export class AttachedRun {
  readonly writer: EventWriter;
  readonly release: () => void;
  readonly #session: SessionHandle;
  readonly #out: Output;
  readonly #left = new AbortController();
  #runId: string;
  #isOpen = false;
  #abortAsked = false;
  #exitCode: number = exitCodes.ok;

  constructor(session: SessionHandle, runId: string, out: Output) {
    this.#session = session;
    this.#runId = runId;
    this.#out = out;
    this.writer = new EventWriter(out);
    this.release = onEndSignals((before, signal) => {
      this.#exitCode = exitCodeOfSignal(signal);
      if (before > 0 || signal === 'SIGTERM') this.#left.abort();
      else this.#askForAbort();
    });
  }

  get left(): AbortSignal {
    return this.#left.signal;
  }

  /** What the promise gives, or nothing when the person leaves before. */
  async orLeft<T>(promise: Promise<T>): Promise<T | undefined> {
    const gone = Promise.withResolvers<undefined>();
    this.left.addEventListener('abort', () => gone.resolve(undefined), { once: true });
    promise.catch(() => undefined);
    return Promise.race([promise, gone.promise]);
  }

  opened({ became, runId }: PromptAnswer, detach: boolean): void {
    const { sessionId } = this.#session;
    this.#runId = runId;
    this.#isOpen = true;
    this.#out.object({ type: 'prompt', sessionId, runId, became });
    const { ink } = this.#out;
    this.#out.line(detach ? `session ${sessionId}` : ink.dim(`session ${sessionId}`));
    if (became !== 'opened') this.#out.line(ink.dim(`${became} into run ${runId}, which was going on`));
    else if (detach) this.#out.line(`run ${runId}`);
    if (this.#abortAsked) this.#sendAbort();
  }

  ended(end: RunEnd): number {
    const { sessionId } = this.#session;
    this.#out.object({ type: 'result', sessionId, runId: this.#runId, ...end });
    if (end.usage !== undefined) {
      const turns = `${end.turns} turn${end.turns === 1 ? '' : 's'}`;
      this.writer.line(this.#out.ink.dim(`${turns}, ${usageText(end.usage)}; session ${sessionId}`));
    } else if (end.error !== undefined && end.status === 'interrupted') {
      this.writer.line(this.#out.ink.red(end.error.message));
    }
    return end.status === 'done' ? exitCodes.ok : exitCodes.failed;
  }

  leave(): number {
    const { sessionId } = this.#session;
    const what = this.#isOpen
      ? 'left; the run goes on without this terminal'
      : 'left before a worker has answered; the run begins when one does';
    const text = `${what}. Look at it: everturn show ${sessionId} --follow`;
    this.writer.note(text, { type: 'left', sessionId, runId: this.#runId, abortAsked: this.#abortAsked });
    return this.#exitCode;
  }

  #askForAbort(): void {
    this.#abortAsked = true;
    const when = this.#isOpen ? '' : ' as soon as it has begun';
    this.writer.note(`aborting the run${when}; Ctrl-C once more leaves it`, { type: 'aborting', runId: this.#runId });
    if (this.#isOpen) this.#sendAbort();
  }

  #sendAbort(): void {
    this.#session.sendAbort(this.#runId).catch((error: Error) => {
      this.writer.note(`the abort could not be sent: ${error.message}`, {
        type: 'abort_failed',
        runId: this.#runId,
        reason: error.message,
      });
    });
  }
}

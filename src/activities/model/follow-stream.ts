import type { AssistantMessage, AssistantMessageEvent } from '@earendil-works/pi-ai';
import { errorText } from '../../common/errors.ts';

/** How long an adapter may take to end its stream after its signal fired; then the partial message is taken as it is. */
const ABORT_GRACE_MS = 500;

/** How the stream ended. `message` of a failed one is what the adapter said or, if it said nothing, a copy of the partial. */
export type StreamEnd =
  | { kind: 'done'; message: AssistantMessage }
  | { kind: 'failed'; message?: AssistantMessage; text: string };

export interface FollowedStream {
  /** Starts the stream. What it throws is an end like any other. */
  open(): AsyncIterable<AssistantMessageEvent>;
  /** The signal that the stream was started with. */
  signal: AbortSignal;
  /** Every event but the last. What it throws is passed on. */
  onEvent(event: AssistantMessageEvent): void;
}

/** Reads a stream to its end, of whatever kind. Rejects only with what `onEvent` threw. */
export async function followStream({ open, signal, onEvent }: FollowedStream): Promise<StreamEnd> {
  let partial: AssistantMessage | undefined;
  const broken = (text: string): StreamEnd =>
    partial === undefined ? { kind: 'failed', text } : { kind: 'failed', message: structuredClone(partial), text };
  const grace = graceAfter(signal);
  try {
    let events: AsyncIterator<AssistantMessageEvent>;
    try {
      events = open()[Symbol.asyncIterator]();
    } catch (error) {
      return broken(errorText(error));
    }
    for (;;) {
      const step = await Promise.race([events.next().catch((error: unknown) => ({ error })), grace.over]);
      if (step === 'over') return broken('The provider did not end its stream after an abort');
      if ('error' in step) return broken(errorText(step.error));
      if (step.done === true) return broken('The stream ended without a result');
      const event = step.value;
      if (event.type === 'done') return { kind: 'done', message: event.message };
      if (event.type === 'error') {
        return { kind: 'failed', message: event.error, text: event.error.errorMessage ?? 'Unknown provider error' };
      }
      partial = event.partial;
      onEvent(event);
    }
  } finally {
    grace.cancel();
  }
}

/** `over` settles when `signal` fired and the adapter then had its time to finish. */
function graceAfter(signal: AbortSignal): { over: Promise<'over'>; cancel(): void } {
  const { promise, resolve } = Promise.withResolvers<'over'>();
  let timer: NodeJS.Timeout | undefined;
  const start = () => {
    timer = setTimeout(resolve, ABORT_GRACE_MS, 'over');
  };
  signal.addEventListener('abort', start, { once: true });
  return {
    over: promise,
    cancel() {
      signal.removeEventListener('abort', start);
      clearTimeout(timer);
    },
  };
}

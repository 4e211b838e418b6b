import { type ConnectionOptions, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { errorText } from '../common/errors.ts';

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type Call = ReturnType<Interceptor>;

const cancelled = 1;

/**
 * Temporal's own retries, and behind them a guard: its client (1.24) does not clear the timer of a retry when its
 * connection is closed, and the closed channel then throws where nobody can catch it. With the guard the call ends as
 * cancelled.
 */
export const interceptors: Interceptor[] = [
  makeGrpcRetryInterceptor(defaultGrpcRetryOptions()),
  (options, nextCall) => {
    try {
      // Typed as the class of which it has the interface.
      return nextCall(options) as Call;
    } catch (error) {
      return cancelledCall(errorText(error));
    }
  },
];

function cancelledCall(details: string): Call {
  const call: Pick<Call, 'start' | 'sendMessage' | 'sendMessageWithContext' | 'startRead' | 'halfClose'> = {
    start: (metadata, listener) => {
      // Later, as a real call would: the caller sends its message first.
      process.nextTick(() => {
        listener?.onReceiveMessage?.(null);
        listener?.onReceiveStatus?.({ code: cancelled, details, metadata });
      });
    },
    sendMessage: () => {},
    sendMessageWithContext: () => {},
    startRead: () => {},
    halfClose: () => {},
  };
  // What is left of the interface concerns a call that has a peer.
  return call as unknown as Call;
}

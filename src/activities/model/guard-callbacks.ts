import type { ModelsSimpleStreamOptions } from '@earendil-works/pi-ai';
import { type HttpExchange, observedFetch } from './http-exchange.ts';
import type { StallWatch } from './stall-watch.ts';

/**
 * The options with their callbacks wrapped: adapters turn what a callback throws into a provider error, so it is kept
 * here, as `thrown`, to be thrown again with its identity; and the stall clock rests while one runs.
 */
export function guardCallbacks(options: ModelsSimpleStreamOptions, exchange: HttpExchange, watch: StallWatch) {
  const guarded: { options: ModelsSimpleStreamOptions; thrown: { error: unknown } | undefined } = {
    options,
    thrown: undefined,
  };
  const guard = <A extends unknown[], R>(callback: (...args: A) => R | Promise<R>) => {
    return async (...args: A): Promise<R> => {
      watch.pause();
      try {
        return await callback(...args);
      } catch (error) {
        guarded.thrown ??= { error };
        throw error;
      } finally {
        watch.resume();
      }
    };
  };
  const { onPayload, onResponse, onProviderStreamEvent, transformHeaders } = options;
  guarded.options = {
    ...options,
    fetch: observedFetch(options.fetch ?? globalThis.fetch),
    onResponse: guard(async (response, model) => {
      // Adapters on their own HTTP stack (Bedrock) have no fetch to observe.
      if (exchange.status === undefined && exchange.connectError === undefined) {
        exchange.status = response.status;
        exchange.headers = new Headers(response.headers);
      }
      await onResponse?.(response, model);
    }),
    ...(onPayload === undefined ? {} : { onPayload: guard(onPayload) }),
    ...(onProviderStreamEvent === undefined ? {} : { onProviderStreamEvent: guard(onProviderStreamEvent) }),
    ...(transformHeaders === undefined ? {} : { transformHeaders: guard(transformHeaders) }),
  };
  return guarded;
}

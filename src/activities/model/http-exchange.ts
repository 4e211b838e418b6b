import { AsyncLocalStorage } from 'node:async_hooks';
import type { FetchFunction } from '@earendil-works/pi-ai';

/**
 * The HTTP facts of the last exchange of one model request. pi-ai's error messages keep neither the status of every
 * provider nor any header, and its `onResponse` sees only successes in most adapters; so they are noted at `fetch`.
 */
export interface HttpExchange {
  /** Status of the last answer; undefined when none came, or when the adapter does not use `fetch`. */
  status?: number;
  headers?: Headers;
  /** `fetch` rejected: no answer. Present only if it did. */
  connectError?: { error: unknown };
  /** The answer's body ended in an error, such as a closed connection. Present only if it did. */
  bodyError?: { error: unknown };
  /** Called for every sign of life: an answer's head, each piece of its body (pings count), its end. */
  onActivity(): void;
}

const current = new AsyncLocalStorage<HttpExchange>();
const observed = new WeakMap<FetchFunction, FetchFunction>();

/** Runs `task` such that every `observedFetch` called in it, at any depth, notes its facts in `exchange`. */
export function withExchange<T>(exchange: HttpExchange, task: () => T): T {
  return current.run(exchange, task);
}

/**
 * The observing form of a fetch function. The same input gives the same output: pi-ai keeps one client (and its token
 * cache, for Anthropic's workload identity) as long as the fetch function stays identical.
 */
export function observedFetch(base: FetchFunction): FetchFunction {
  let fetch = observed.get(base);
  if (fetch === undefined) {
    fetch = (input, init) => {
      const exchange = current.getStore();
      return exchange === undefined ? base(input, init) : observe(exchange, () => base(input, init));
    };
    observed.set(base, fetch);
  }
  return fetch;
}

async function observe(exchange: HttpExchange, send: () => Promise<Response>): Promise<Response> {
  delete exchange.status;
  delete exchange.headers;
  delete exchange.connectError;
  delete exchange.bodyError;
  try {
    const response = await send();
    exchange.onActivity();
    exchange.status = response.status;
    exchange.headers = response.headers;
    return response.body === null ? response : withBody(response, watchBody(exchange, response.body));
  } catch (error) {
    exchange.connectError = { error };
    throw error;
  }
}

/** Passes the body on piece by piece; cancelling the copy cancels the original, so the connection closes. */
function watchBody(exchange: HttpExchange, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          exchange.onActivity();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          exchange.bodyError = { error };
          controller.error(error);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers, url } = response;
  return Object.defineProperty(new Response(body, { status, statusText, headers }), 'url', { value: url });
}

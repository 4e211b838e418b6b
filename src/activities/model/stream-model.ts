import type {
  Api,
  AssistantMessage,
  AssistantMessageEvent,
  Message,
  Model,
  Models,
  ModelsSimpleStreamOptions,
  Tool,
} from '@earendil-works/pi-ai';
import { isContextOverflow } from '@earendil-works/pi-ai';
import { classifyFailure } from './classify-failure.ts';
import { followStream } from './follow-stream.ts';
import { guardCallbacks } from './guard-callbacks.ts';
import { type HttpExchange, withExchange } from './http-exchange.ts';
import type { ModelOutcome } from './outcome.ts';
import { missingKeyText } from './resolve-model.ts';
import { StallWatch } from './stall-watch.ts';

export interface ModelRequest {
  /** The pi-ai collection that owns the model's provider and resolves its credentials. */
  models: Models;
  model: Model<Api>;
  context: { systemPrompt?: string; messages: Message[]; tools?: Tool[] };
  /**
   * pi-ai's options: reasoning, headers, metadata, cacheRetention, sessionId, onPayload, onResponse, fetch and so on.
   * `maxRetries` and `deferred` are overridden: one call is one attempt, and it waits for the answer.
   */
  options: ModelsSimpleStreamOptions;
  /** Aborts the provider's HTTP request; the outcome is then `aborted` and keeps the content that arrived. */
  signal: AbortSignal;
  /**
   * Milliseconds without any byte from the provider after which the request is aborted and the outcome is `transient`
   * with reason `stall`. Pings count as life; the wait for the first byte counts as silence; time spent in the
   * caller's own callbacks does not count.
   */
  stallTimeoutMs: number;
  /**
   * Every stream event, in order, synchronously. `partial` is live: copy what must last. The last event is `done` or
   * `error` and carries the outcome's message. If it throws, the request is aborted and `streamModel` rejects with it.
   */
  onEvent(event: AssistantMessageEvent): void;
}

/**
 * Sends one request to the provider, once. Never rejects for provider trouble, which is an outcome; rejects only with
 * what one of the caller's callbacks (onEvent, onPayload, onResponse, onProviderStreamEvent, transformHeaders) threw.
 */
export async function streamModel(request: ModelRequest): Promise<ModelOutcome> {
  const startedAt = Date.now();
  const asked = request.options.signal;
  const aborted = asked === undefined ? request.signal : AbortSignal.any([request.signal, asked]);
  if (aborted.aborted) return finish(request, abortedOutcome(emptyMessage(request.model, startedAt)));

  const stop = new AbortController();
  const signal = AbortSignal.any([aborted, stop.signal]);
  let stalled = false;
  const watch = new StallWatch(request.stallTimeoutMs, () => {
    stalled = true;
    stop.abort(new Error('stalled'));
  });
  const exchange: HttpExchange = { onActivity: () => watch.touch() };
  const callbacks = guardCallbacks(request.options, exchange, watch);
  try {
    const options = { ...callbacks.options, signal, maxRetries: 0, deferred: false };
    const end = await followStream({
      open: () => withExchange(exchange, () => request.models.streamSimple(request.model, request.context, options)),
      signal,
      onEvent(event) {
        watch.touch();
        request.onEvent(event);
      },
    });
    if (end.kind === 'done') {
      if (callbacks.thrown !== undefined) throw callbacks.thrown.error;
      return finish(request, answeredOutcome(request.model, end.message));
    }
    // Frees the connection where the adapter left it open, as after an event it could not parse.
    stop.abort();
    const partial = end.message ?? emptyMessage(request.model, startedAt);
    if (aborted.aborted) return finish(request, abortedOutcome(partial));
    if (callbacks.thrown !== undefined) throw callbacks.thrown.error;
    if (stalled) {
      const text = `The provider stalled: nothing arrived for ${request.stallTimeoutMs} ms`;
      return finish(request, { kind: 'transient', message: failed(partial, text), reason: 'stall' });
    }
    return finish(request, await failedOutcome(request, failed(partial, end.text), exchange));
  } catch (error) {
    stop.abort();
    throw error;
  } finally {
    watch.stop();
  }
}

/**
 * A complete answer counts as one even if its usage is above the declared window, which may be declared wrong; but an
 * answer of length zero that filled the window is how some servers say overflow.
 */
function answeredOutcome(model: Model<Api>, message: AssistantMessage): ModelOutcome {
  return message.stopReason === 'length' && isContextOverflow(message, model.contextWindow)
    ? { kind: 'overflow', message }
    : { kind: 'message', message };
}

async function failedOutcome(
  request: ModelRequest,
  message: AssistantMessage,
  exchange: HttpExchange,
): Promise<ModelOutcome> {
  const failure = classifyFailure(message, exchange);
  if (failure.kind === 'permanent' && failure.code === 'no_api_key') {
    return {
      ...failure,
      message: failed(message, await missingKeyText(request.models, request.model, message.errorMessage)),
    };
  }
  return { ...failure, message };
}

function abortedOutcome(partial: AssistantMessage): ModelOutcome {
  return { kind: 'aborted', message: { ...partial, stopReason: 'aborted', errorMessage: 'Request was aborted' } };
}

function failed(message: AssistantMessage, text: string): AssistantMessage {
  return { ...message, stopReason: 'error', errorMessage: text };
}

/** Hands the last event to the caller, made from the outcome so that the two never disagree. */
function finish(request: ModelRequest, outcome: ModelOutcome): ModelOutcome {
  const { message } = outcome;
  const { stopReason } = message;
  if (stopReason === 'error' || stopReason === 'aborted') {
    request.onEvent({ type: 'error', reason: stopReason, error: message });
  } else if (stopReason !== 'pending') {
    request.onEvent({ type: 'done', reason: stopReason, message });
  }
  return outcome;
}

function emptyMessage(model: Model<Api>, timestamp: number): AssistantMessage {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return {
    role: 'assistant',
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost },
    stopReason: 'pending',
    timestamp,
  };
}

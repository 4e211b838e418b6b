import type { SimpleStreamOptions } from '@earendil-works/pi-ai';
import { ApplicationFailure } from '@temporalio/activity';
import type { Agent } from '../agent/agent.ts';
import type { ModelInput, ModelResult } from '../common/effects.ts';
import { type ErrorInfo, EverturnError } from '../common/errors.ts';
import { keyOf, messageRecords, type NewRecord } from '../common/events.ts';
import { polledMessages } from '../common/ids.ts';
import { type AgentMessage, type AssistantMessage, unansweredReply } from '../common/messages.ts';
import { noUsage } from '../common/usage.ts';
import type { ContextItem } from '../session/context-cache.ts';
import type { Commit, RequestRecord } from '../store/types.ts';
import { type Effect, effectSession, runEffect } from './effect.ts';
import { payloadHook } from './hooks/provider-hooks.ts';
import { askQueueHook, keptQueueAnswer } from './hooks/queue-hooks.ts';
import { buildRequest } from './model/build-request.ts';
import { toDelta } from './model/live.ts';
import type { ModelOutcome } from './model/outcome.ts';
import { replyCommit } from './model/reply-commit.ts';
import { RequestKeeper } from './model/request-keeper.ts';
import { checkModelAuth, resolveModel } from './model/resolve-model.ts';
import { streamModel } from './model/stream-model.ts';
import { agentOf, type Runtime } from './runtime.ts';

const maxRetryDelayMs = 60_000;
/** A server that asks for more is asked again after this: quotas that reset at midnight are looked at hourly. */
const maxRetryAfterMs = 3_600_000;

/**
 * One reply of the model. In the log before the request: everything the workflow gave to write. After it, in one
 * transaction: the message and what its calls need. A worker that dies in between costs one more request with the same
 * content; one that dies after it costs nothing, the next attempt finds the reply.
 */
export function streamAssistantResponse(runtime: Runtime, input: ModelInput): Promise<ModelResult> {
  const place = {
    effect: `${input.runId}/t${input.turn}/model`,
    runId: input.runId,
    turn: input.turn,
    settling: input.aborted === true,
    adopt: (result: ModelResult) => adopt(runtime, input, result),
    first: {
      records: input.write,
      ...(input.openRun === undefined ? {} : { openRun: { runId: input.runId, token: input.openRun } }),
    },
  };
  return runEffect(runtime, place, async (effect) => {
    const { runEnded, committed } = effect.begun;
    // A worker that died after it had ended the run, and before its workflow task was done, leaves a workflow that may
    // decide otherwise: a message that came meanwhile asks for one more turn. What is stored wins.
    if (runEnded || committed === undefined || committed.duplicateRun !== undefined)
      return repeatedRun(runtime, effect, input);
    const agent = agentOf(runtime, input.agent);
    const isAborted = () => input.aborted === true || effect.stopReason() === 'abort';
    const { leaf, steering } = await poll(effect, agent, input, committed.leaf, isAborted());
    if (isAborted()) {
      const ended = { stopReason: 'aborted', errorMessage: 'Request was aborted', timestamp: Date.now() } as const;
      return finish(runtime, effect, agent, input, unansweredReply(input.model, ended), { leaf, steering });
    }
    const items = await runtime.contexts.read(effect.fence.sessionId, leaf);
    const { outcome, unkept } = await request(runtime, effect, agent, input, items);
    return settle(runtime, effect, agent, input, outcome, { ...unkept, leaf, steering });
  });
}

/** Behind a reply that is there, no message may be written before the results of its calls: it waits for the next turn. */
async function adopt(runtime: Runtime, input: ModelInput, result: ModelResult): Promise<ModelResult> {
  const session = await runtime.store.readSession(effectSession());
  return { ...result, leaf: session?.leaf ?? null, ...(await unwrittenOf(runtime, input, true)) };
}

/**
 * What of `write` is not in the log. With `behind` also messages that stand behind the reply, since a later turn of the run
 * has taken them along: they wait for that turn as if they were new. One that another run has is answered there.
 */
async function unwrittenOf(
  runtime: Runtime,
  input: ModelInput,
  behind: boolean,
): Promise<Pick<ModelResult, 'unwritten'>> {
  const keys = [input.entryId, ...input.write.map(keyOf)];
  const [reply, ...places] = await runtime.store.findRecords(effectSession(), keys);
  const unwritten = input.write.filter((record, index) => {
    const place = places[index] ?? null;
    if (isOwn(record, input)) return false;
    if (place === null) return true;
    const isMessage = record.kind === 'entry' && record.entry.type === 'message';
    return (
      behind && isMessage && place.runId === input.runId && place.offset > (reply?.offset ?? Number.POSITIVE_INFINITY)
    );
  });
  return unwritten.length === 0 ? {} : { unwritten };
}

/** Whether the run has written the record itself, in its own time: not so what the queues did, and changes of settings. */
function isOwn(record: NewRecord, { runId }: ModelInput): boolean {
  return record.kind === 'event' && record.key.startsWith(`${runId}/`);
}

/** The run has its records already; only what the queues did since, and changes of settings, may be new. */
async function repeatedRun(runtime: Runtime, effect: Effect, input: ModelInput): Promise<ModelResult> {
  const isNew = (record: NewRecord) => record.kind === 'event' || record.entry.type !== 'message';
  const records = input.write.filter((record) => isNew(record) && !isOwn(record, input));
  const { leaf } = await effect.commit({ records });
  return {
    duplicate: true,
    entryId: input.entryId,
    leaf,
    stopReason: 'stop',
    calls: [],
    usage: noUsage,
    ...(await unwrittenOf(runtime, input, false)),
  };
}

/**
 * What the queue hook gives stands in the log before the request, as what the queue gave does. On an abort nobody is
 * asked; but what the hook handed out to an earlier attempt is not lost.
 */
async function poll(
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  leaf: string | null,
  aborted: boolean,
): Promise<{ leaf: string | null; steering: AgentMessage[] }> {
  const name = 'getSteeringMessages';
  if (!input.poll) return { leaf, steering: [] };
  const steering = aborted ? keptQueueAnswer(effect, name) : await askQueueHook(effect, agent, name);
  if (steering.length === 0) return { leaf, steering };
  const records = messageRecords(polledMessages(`${input.runId}/t${input.turn}`, steering));
  return { leaf: (await effect.commit({ records })).leaf, steering };
}

async function request(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  items: ContextItem[],
): Promise<{ outcome: ModelOutcome; unkept: Pick<Commit, 'request'> }> {
  const model = resolveModel(runtime.models, input.model);
  await checkModelAuth(runtime.models, model);
  const prepared = await buildRequest(runtime, effect, agent, input, model, items);
  const live = runtime.deltas.open({ ...placeOf(effect, input), attempt: effect.attempts });
  const { systemPrompt, messages, tools, options, record } = prepared;
  const keeper = record === undefined ? undefined : new RequestKeeper(effect, record);
  const streaming = streamModel({
    models: runtime.models,
    model,
    context: { systemPrompt, messages, tools },
    // The wire carries the request that the log keeps, not a continuation of state in one worker's memory.
    options: { ...options, disableContinuation: true, ...callbacksOf(runtime, effect, agent) },
    signal: effect.signal,
    stallTimeoutMs: agent.stallTimeoutMs,
    onEvent: (event) => {
      const delta = toDelta(event);
      if (delta !== undefined) live.push(delta);
    },
  });
  const outcome = await streaming.catch((error: unknown) => {
    keeper?.cancel();
    throw error;
  });
  const unkept = (await keeper?.end()) ?? {};
  void runtime.deltas.flush();
  return { outcome, unkept };
}

/** after_provider_response is for readers of the log: headers that may hold secrets or state stay out. */
function callbacksOf(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
): Pick<SimpleStreamOptions, 'onPayload' | 'onResponse'> {
  const onPayload = payloadHook(runtime, effect, agent);
  return {
    ...(onPayload === undefined ? {} : { onPayload }),
    onResponse: ({ status, headers }) => {
      const { 'set-cookie': _, ...shown } = headers;
      const key = `${effect.fence.effect}/response/${effect.attempt}`;
      effect.note({ kind: 'event', key, event: { type: 'after_provider_response', status, headers: shown } });
    },
  };
}

/** What stands around a reply: the leaf before it, and what goes with it. */
interface Around {
  leaf: string | null;
  steering: AgentMessage[];
  request?: RequestRecord;
}

async function settle(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  outcome: ModelOutcome,
  around: Around,
): Promise<ModelResult> {
  if (outcome.kind === 'aborted' && effect.stopReason() !== 'abort') {
    throw new EverturnError('cancelled', 'The worker stopped while the model replied.', { retryable: true });
  }
  if (outcome.kind === 'transient' && effect.attempt < agent.retry.maxAttempts) {
    // The pause may be long enough for a deploy: the retry sends what was sent.
    if (around.request !== undefined) await effect.commitAside({ request: around.request });
    throw retryLater(agent, effect.attempt, outcome);
  }
  const error = errorOf(outcome, effect.attempt);
  return finish(runtime, effect, agent, input, outcome.message, {
    ...around,
    ...(error === undefined ? {} : { error }),
  });
}

function errorOf(outcome: ModelOutcome, attempt: number): ErrorInfo | undefined {
  const text = outcome.message.errorMessage ?? 'The model request failed.';
  switch (outcome.kind) {
    case 'permanent':
      return { code: outcome.code, message: text };
    case 'transient':
      return { code: 'model_failed', message: `${text} (${attempt} attempts; the last one: ${outcome.reason})` };
    case 'overflow':
      return { code: 'model_failed', message: `${text} The conversation is larger than the model's context window.` };
    default:
      return undefined;
  }
}

/** Temporal waits, not this worker: a long Retry-After survives any crash. */
function retryLater(
  agent: Agent,
  attempt: number,
  outcome: Extract<ModelOutcome, { kind: 'transient' }>,
): ApplicationFailure {
  const backoff = Math.min(agent.retry.baseDelayMs * 2 ** (attempt - 1), maxRetryDelayMs);
  return ApplicationFailure.create({
    type: 'model_failed',
    message: `${outcome.reason}: ${outcome.message.errorMessage}`,
    nonRetryable: false,
    nextRetryDelay: Math.min(outcome.retryAfterMs ?? backoff, maxRetryAfterMs),
  });
}

async function finish(
  runtime: Runtime,
  effect: Effect,
  agent: Agent,
  input: ModelInput,
  message: AssistantMessage,
  { error, request, leaf: before, steering }: Around & { error?: ErrorInfo },
): Promise<ModelResult> {
  const { commit, result: plain } = replyCommit(agent, input, message, error, Date.now());
  const result = steering.length === 0 || !input.wantMessage ? plain : { ...plain, steering };
  const kept = request === undefined ? {} : { request };
  const { leaf } = await effect.commit({ ...commit, ...kept, result: JSON.parse(JSON.stringify(result)) });
  // The tools of this reply run here, most likely: they find it without asking the store.
  runtime.contexts.extend(effect.fence.sessionId, before, input.entryId, message);
  return { ...result, leaf };
}

function placeOf(effect: Effect, input: ModelInput): { sessionId: string; runId: string; entryId: string } {
  return { sessionId: effect.fence.sessionId, runId: input.runId, entryId: input.entryId };
}

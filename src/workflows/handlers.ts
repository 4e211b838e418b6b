import { condition, defineQuery, defineSignal, defineUpdate, setHandler } from '@temporalio/workflow';
import { EverturnError, toErrorInfo } from '../common/errors.ts';
import { promptEntryId } from '../common/ids.ts';
import { parseIncoming } from '../common/messages.ts';
import {
  abortSchema,
  type PromptAnswer,
  type PromptByName,
  type PromptInput,
  promptByNameSchema,
  promptInputSchema,
  queryNames,
  type SessionCounts,
  type SessionQueues,
  type SessionStatus,
  signalNames,
} from '../common/signals.ts';
import { quick } from './activities.ts';
import { flushEvents } from './append.ts';
import { errorInfoOf, failureOf, refusing } from './failures.ts';
import { beginAbort, clearQueues, enqueue, type QueueName } from './queues.ts';
import { installSettingHandlers } from './settings.ts';
import { nextNumber, openedOf, type SessionState } from './state.ts';

/** The interface of a running session. Nothing that comes in can fail a workflow task: it is checked, or recorded and ignored. */
export function installHandlers(state: SessionState): void {
  for (const queue of ['steer', 'followUp', 'nextTurn'] as const) {
    setHandler(defineSignal<[unknown]>(signalNames[queue]), (message) => receiveMessage(state, queue, message));
  }
  setHandler(defineSignal<[unknown]>(signalNames.abort), (target) => receiveAbort(state, target));
  setHandler(defineUpdate<PromptAnswer, [PromptInput]>('prompt'), (input) => acceptPrompt(state, input), {
    validator: (input) => refusing(() => checkPrompt(state, input)),
  });
  installSettingHandlers(state);
  setHandler(defineQuery<SessionStatus>(queryNames.status), () => statusOf(state));
  setHandler(defineQuery<string | null>(queryNames.leaf), () => state.leaf);
  setHandler(defineQuery<SessionQueues>(queryNames.queues), () => queuesOf(state));
  setHandler(defineQuery<SessionCounts>(queryNames.counts), () => ({ ...state.counts }));
}

async function receiveMessage(state: SessionState, queue: QueueName, input: unknown): Promise<void> {
  try {
    enqueue(state, queue, parseIncoming(input, Date.now()));
  } catch (error) {
    rejectSignal(state, signalNames[queue], error);
  }
  await flushEvents(state);
}

/**
 * Without a run id it means the run that is going on; with none going on it clears the queues, as in pi. One that names
 * another run comes too late, and does nothing.
 */
async function receiveAbort(state: SessionState, input: unknown): Promise<void> {
  const parsed = abortSchema.safeParse(input);
  if (!parsed.success) rejectSignal(state, signalNames.abort, new Error('send nothing or {"runId": "…"}'));
  else if (parsed.data?.runId === undefined && !isBusy(state)) clearIdleQueues(state);
  else requestAbort(state, parsed.data?.runId);
  await flushEvents(state);
}

function clearIdleQueues(state: SessionState): void {
  const { steer, followUp } = clearQueues(state);
  const key = `abort/${state.chain}/${nextNumber(state)}`;
  state.events.push({ kind: 'event', key, event: { type: 'abort', clearedSteer: steer, clearedFollowUp: followUp } });
}

function requestAbort(state: SessionState, runId: string | undefined): void {
  for (const request of state.waiting) if (request.runId === runId) request.aborted = true;
  const run = state.run;
  if (run === null || run.closing || run.aborting || (runId !== undefined && runId !== run.runId)) return;
  beginAbort(state, run);
  state.runScope?.cancel();
}

function rejectSignal(state: SessionState, signal: string, error: unknown): void {
  state.counts.rejectedSignals += 1;
  state.events.push({
    kind: 'event',
    key: `rejected/${state.chain}/${nextNumber(state)}`,
    event: { type: 'signal_rejected', signal, reason: toErrorInfo(error).message },
  });
}

function isBusy(state: SessionState): boolean {
  return (state.run !== null && !state.run.closing) || state.waiting.length > 0;
}

function isKnown(state: SessionState, runId: string): boolean {
  return (
    state.run?.runId === runId ||
    state.waiting.some((request) => request.runId === runId) ||
    state.ended.some((ended) => ended.runId === runId) ||
    state.joined.some(({ promptId }) => promptId === runId)
  );
}

// A refused prompt leaves no trace in the history, so it may be sent again with the same run id.
function checkPrompt(state: SessionState, input: unknown): void {
  const { runId, message, onBusy, agent } = parsePrompt(input);
  checkAgent(state, agent);
  if (!promptByNameSchema.safeParse(message).success) parseIncoming(message, 0);
  if (isKnown(state, runId) || onBusy !== 'reject' || !isBusy(state)) return;
  const current = state.run?.runId ?? state.waiting[0]?.runId ?? '';
  throw new EverturnError(
    'busy',
    `The session is busy with run ${current}. Wait for it, or prompt with onBusy: 'steer', 'followUp' or 'interrupt'.`,
    { details: { runId: current } },
  );
}

function checkAgent(state: SessionState, agent: string | undefined): void {
  const own = state.input.agent;
  if (agent === undefined || agent === own) return;
  throw new EverturnError(
    'invalid_argument',
    `This session belongs to agent "${own}", not "${agent}". Use another session id.`,
  );
}

/** The run is reserved before anything is awaited, so two callers at once get two answers that fit each other. */
async function acceptPrompt(state: SessionState, input: PromptInput): Promise<PromptAnswer> {
  const prompt = parsePrompt(input);
  const byName = promptByNameSchema.safeParse(prompt.message);
  const answer = byName.success ? await placeByName(state, prompt, byName.data) : placePrompt(state, prompt);
  await opening(state);
  if (answer.became !== 'opened') await flushEvents(state);
  return answer;
}

/** The text is the agent's: it is looked up first, and only then is the run reserved. */
async function placeByName(state: SessionState, prompt: PromptInput, name: PromptByName): Promise<PromptAnswer> {
  await opening(state);
  const { agent } = openedOf(state).manifest;
  try {
    const { text } = await quick.expandPrompt({ agent, prompt: name });
    checkPrompt(state, { ...prompt, message: text });
    return placePrompt(state, { ...prompt, message: text });
  } catch (error) {
    throw failureOf(errorInfoOf(error));
  }
}

async function opening(state: SessionState): Promise<void> {
  await condition(() => state.opened !== undefined || state.failure !== undefined);
  if (state.failure !== undefined) throw failureOf(state.failure);
}

function placePrompt(state: SessionState, { runId, message, onBusy }: PromptInput): PromptAnswer {
  const joined = state.joined.find(({ promptId }) => promptId === runId);
  if (joined !== undefined) return joined.answer;
  if (isKnown(state, runId)) return { became: 'opened', runId };
  const incoming = parseIncoming(message, Date.now());
  const running = state.run !== null && !state.run.closing ? state.run : undefined;
  const current = running?.runId ?? state.waiting[0]?.runId;
  if (current !== undefined && (onBusy === 'steer' || onBusy === 'followUp')) {
    enqueue(state, onBusy, incoming, promptEntryId(runId));
    const answer = { became: onBusy === 'steer' ? 'steered' : 'queued', runId: current } as const;
    state.joined.push({ promptId: runId, answer });
    return answer;
  }
  if (onBusy === 'interrupt') {
    requestAbort(state, undefined);
    for (const request of state.waiting) request.aborted = true;
  }
  state.waiting.push({
    runId,
    token: `${state.chain}/${nextNumber(state)}`,
    messages: [{ id: promptEntryId(runId), message: incoming }],
  });
  return { became: 'opened', runId };
}

function parsePrompt(input: unknown): PromptInput {
  const parsed = promptInputSchema.safeParse(input);
  if (parsed.success) return parsed.data as PromptInput;
  const issue = parsed.error.issues[0];
  throw new EverturnError('invalid_argument', `prompt: ${issue?.path.join('.')}: ${issue?.message}`);
}

function statusOf(state: SessionState): SessionStatus {
  const { run, opened } = state;
  const lastRun = state.ended.at(-1);
  return {
    phase:
      opened === undefined
        ? 'opening'
        : run === null && state.waiting.length === 0
          ? 'idle'
          : run?.aborting
            ? 'aborting'
            : 'running',
    ...(run === null ? {} : { runId: run.runId, turn: run.turn }),
    waiting: state.waiting.map((request) => request.runId),
    model: state.model,
    thinkingLevel: state.thinkingLevel,
    activeTools: state.activeTools,
    epoch: opened === undefined ? 0 : openedOf(state).epoch,
    ...(lastRun === undefined ? {} : { lastRun }),
  };
}

function queuesOf(state: SessionState): SessionQueues {
  const { steer, followUp, nextTurn, steeringMode, followUpMode } = state.queues;
  const messages = (items: typeof steer) => items.map((item) => item.message);
  return {
    steer: messages(steer),
    followUp: messages(followUp),
    nextTurn: messages(nextTurn),
    steeringMode,
    followUpMode,
  };
}

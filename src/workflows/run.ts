import { CancellationScope, workflowInfo } from '@temporalio/workflow';
import type { AppendInput } from '../common/effects.ts';
import { type ErrorInfo, EverturnError } from '../common/errors.ts';
import type { NewRecord, RunStatus } from '../common/events.ts';
import { assistantEntryId, polledMessages } from '../common/ids.ts';
import { type AssistantMessage, unansweredReply } from '../common/messages.ts';
import type { AgentLoopTurnUpdate, Policy } from '../common/policy.ts';
import { effects, gateOf } from './activities.ts';
import { append, takeRecords } from './append.ts';
import { errorInfoOf, failedByAbort } from './failures.ts';
import {
  addToView,
  decideRequest,
  decideTurn,
  dropFromView,
  modelRef,
  newView,
  type PolicyView,
  policyOf,
} from './policies.ts';
import { beginAbort, drain, giveBack, holdQueues } from './queues.ts';
import { openedOf, type RunState, type SessionState } from './state.ts';
import { endTurn, isFailed, streamReply, takeReply, turnEnd, turnRecords } from './turn.ts';
import { giveBackUnwritten, unwrittenMessages } from './unwritten.ts';

/** Replies cut by the output limit in a row, after which a run ends instead of asking once more. */
const maxLengthStops = 3;
// The server holds a continue-as-new back until a second after the start, so there is no sense in one before.
const minRunMs = 1_000;

/** Ends the workflow run at a turn border; the next one goes on with the same run of the agent. */
export class RollOver extends Error {}

/**
 * One run of the agent, from its first turn (or the turn where continue-as-new left it) to `settled`.
 * @throws RollOver when the history is full; anything else it throws means that not even the end could be written.
 */
export async function executeRun(state: SessionState, run: RunState): Promise<void> {
  const scope = new CancellationScope();
  state.runScope = scope;
  if (run.aborting) scope.cancel();
  let end: LoopEnd;
  try {
    end = await scope.run(() => turnLoop(state, run));
  } catch (failure) {
    if (failure instanceof RollOver) throw failure;
    const unwritten = await endBrokenTurn(state, run, failure);
    if (unwritten !== undefined) return dropRepeated(state, run, unwritten);
    end = run.aborting ? { status: 'aborted' } : { status: 'error', error: errorInfoOf(failure) };
  } finally {
    state.runScope = undefined;
  }
  if (end.status === 'repeated') return dropRepeated(state, run, end.unwritten);
  await endRun(state, run, end.status, end.error);
}

/** `repeated`: the run id was used before, in an earlier workflow run of the session. Its first run is the answer. */
type LoopEnd =
  | { status: RunStatus; error?: ErrorInfo }
  | { status: 'repeated'; unwritten: readonly NewRecord[]; error?: undefined };

async function turnLoop(state: SessionState, run: RunState): Promise<LoopEnd> {
  const { manifest } = openedOf(state);
  const begins = !run.started;
  const repeated = begins && !(await passStartGate(state, run));
  run.started = true;
  // A repeated run is not begun: its model effect tells what is to become of its messages, and no policy or hook is asked.
  const policy = repeated ? undefined : policyOf(manifest.agent);
  if (begins && !repeated) await drainSteering(state, run, policy, true);
  const view = policy === undefined ? undefined : await loadView(state, run);
  for (;;) {
    rollOverIfDue(run);
    if (view !== undefined && policy !== undefined) await prepareRequest(state, run, policy, view);
    // One turn. It is not a function of its own: each costs two promises, and these a stack trace each.
    const reply = await streamReply(state, run, policy !== undefined);
    if (reply.duplicate) return { status: 'repeated', unwritten: reply.unwritten ?? [] };
    if (view !== undefined && reply.unwritten !== undefined)
      dropFromView(view, unwrittenMessages(run, reply.unwritten));
    const { terminate, toolResults } = await takeReply(state, run, reply, policy !== undefined);
    endTurn(state, run, reply);
    if (isFailed(reply)) return failedEnd(run, reply.error);
    if (view !== undefined && reply.message !== undefined)
      addToView(view, [...(reply.steering ?? []), reply.message, ...toolResults]);
    checkLengthStops(run, reply.stopReason, reply.calls.length);
    let more = reply.calls.length > 0 && !terminate;
    if (policy !== undefined && view !== undefined && reply.message !== undefined) {
      const decision = await decideTurn(manifest.agent, policy, view, reply.message, toolResults);
      if (decision.stop) return { status: run.aborting ? 'aborted' : 'done' };
      if (decision.update !== undefined) await applyUpdate(state, run, view, decision.update);
      more ||= decision.again;
    }
    checkTurnLimit(state, run, more);
    run.turn += 1;
    const polling = drainSteering(state, run, policy, more);
    if (polling !== undefined) await polling;
    if (run.pending.length > 0 || more) continue;
    await drainFollowUps(state, run);
    // What came while the hooks were asked: a run never ends with a message waiting that nobody held back.
    if (run.pending.length === 0) run.pending.push(...drain(state, 'steer'));
    if (run.pending.length === 0) run.pending.push(...drain(state, 'followUp'));
    if (run.pending.length === 0) return { status: run.aborting ? 'aborted' : 'done' };
  }
}

async function prepareRequest(state: SessionState, run: RunState, policy: Policy, view: PolicyView): Promise<void> {
  addToView(
    view,
    run.pending.map(({ message }) => message),
  );
  if (policy.prepareRequest === undefined) return;
  const { model, thinkingLevel } = state;
  const update = await decideRequest(openedOf(state).manifest.agent, policy, view, { model, thinkingLevel });
  if (update !== undefined) await applyUpdate(state, run, view, update);
}

function failedEnd(run: RunState, error: ErrorInfo | undefined): LoopEnd {
  run.turn += 1;
  if (run.aborting) return { status: 'aborted' };
  return { status: 'error', error: error ?? { code: 'model_failed', message: 'The model request failed.' } };
}

function checkLengthStops(run: RunState, stopReason: AssistantMessage['stopReason'], calls: number): void {
  run.lengthStops = stopReason === 'length' && calls > 0 ? run.lengthStops + 1 : 0;
  if (run.lengthStops < maxLengthStops) return;
  throw new EverturnError(
    'output_limit',
    `The model hit its output limit inside a tool call ${maxLengthStops} times in a row. Raise maxTokens, or ask for smaller steps.`,
  );
}

/** Thrown before anything is drained: what waits in the queues stays there for the next run. */
function checkTurnLimit(state: SessionState, run: RunState, more: boolean): void {
  const { maxTurns } = openedOf(state).manifest;
  const { steer, followUp } = state.queues;
  if (run.turn + 1 < maxTurns || !(more || steer.length + followUp.length > 0)) return;
  throw new EverturnError(
    'turn_limit',
    `The run has had its ${maxTurns} turns. Prompt again to go on, or raise maxTurns of the agent.`,
  );
}

/** Nothing of this run was written: what it had taken along is given back, and what it had changed for itself. */
function dropRepeated(state: SessionState, run: RunState, unwritten: readonly NewRecord[]): void {
  giveBackUnwritten(state, run, unwritten);
  // An abort took these out of the queues, and the run has no end that could tell of them.
  giveBack(state, run.cleared);
  Object.assign(state, run.sessionSettings);
  state.run = null;
}

/** The gate before_agent_start, when there are handlers. @returns false for a run id that was used before */
async function passStartGate(state: SessionState, run: RunState): Promise<boolean> {
  const { agent, hooks } = openedOf(state).manifest;
  const gate = hooks.beforeAgentStart;
  if (gate === null) return true;
  state.counts.effects += 1;
  const { model, thinkingLevel, activeTools } = state;
  const started = await gateOf(gate).beforeAgentStart({
    agent,
    runId: run.runId,
    turn: run.turn,
    openRun: run.token,
    handlers: gate.handlers,
    model,
    thinkingLevel,
    activeTools,
    messages: run.pending.map(({ message }) => message),
  });
  run.pending.push(...started.messages.map((message, index) => ({ id: `${run.runId}/start/${index}`, message })));
  run.systemPrompt = started.systemPrompt ?? null;
  return !started.duplicate;
}

/**
 * Adds to `pending`: from the signal queue first, then from the agent's own queue hook, if it has one. When a turn follows
 * whatever the hook says (`more`), its model effect asks it; but a prepareRequest is to see the messages before that.
 */
function drainSteering(
  state: SessionState,
  run: RunState,
  policy: Policy | undefined,
  more: boolean,
): Promise<void> | undefined {
  // What was taken is in `pending` while the hook is asked: an abort or an error there must not lose it.
  run.pending.push(...drain(state, 'steer'));
  if (!openedOf(state).manifest.hooks.getSteeringMessages || run.aborting) return undefined;
  const goesOn = more || run.pending.length > 0;
  if (!goesOn || policy?.prepareRequest !== undefined) return pollHook(state, run, 'steer');
  run.poll = true;
  return undefined;
}

async function drainFollowUps(state: SessionState, run: RunState): Promise<void> {
  run.pending.push(...drain(state, 'followUp'));
  if (openedOf(state).manifest.hooks.getFollowUpMessages && !run.aborting) await pollHook(state, run, 'followUp');
}

async function pollHook(state: SessionState, run: RunState, queue: 'steer' | 'followUp'): Promise<void> {
  const poll = run.queueHookPolls;
  run.queueHookPolls += 1;
  state.counts.effects += 1;
  const { agent } = openedOf(state).manifest;
  const answer = await effects.pollQueueHook({ agent, runId: run.runId, turn: run.turn, queue, poll });
  run.pending.push(...polledMessages(`${run.runId}/q${poll}`, answer.messages));
}

async function loadView(state: SessionState, run: RunState): Promise<PolicyView> {
  const { manifest } = openedOf(state);
  state.counts.effects += 1;
  const loaded = await effects.loadContext({
    agent: manifest.agent,
    runId: run.runId,
    model: state.model,
    thinkingLevel: state.thinkingLevel,
    activeTools: state.activeTools,
    ...(run.base === null ? {} : { base: run.base }),
    ...(run.systemPrompt === null ? {} : { systemPrompt: run.systemPrompt }),
  });
  return newView(loaded, manifest, state.activeTools);
}

/** A context that a policy returned goes to the store once and travels by digest from then on. */
async function applyUpdate(
  state: SessionState,
  run: RunState,
  view: PolicyView,
  update: AgentLoopTurnUpdate,
): Promise<void> {
  const { model, thinkingLevel, activeTools } = state;
  run.sessionSettings ??= { model, thinkingLevel, activeTools };
  if (update.model !== undefined) state.model = modelRef(update.model);
  if (update.thinkingLevel !== undefined) state.thinkingLevel = update.thinkingLevel;
  // A run that is being aborted asks nobody any more: there is nothing to keep the context for.
  if (update.context === undefined || run.aborting) return;
  const { systemPrompt, messages, tools } = update.context;
  view.context = { ...view.context, ...update.context, messages: [...messages] };
  if (tools !== undefined) state.activeTools = tools.map((tool) => tool.name);
  const { agent } = openedOf(state).manifest;
  state.counts.effects += 1;
  run.base = await effects.saveContext({ agent, runId: run.runId, turn: run.turn, systemPrompt, messages });
}

function rollOverIfDue(run: RunState): void {
  const info = workflowInfo();
  if (!info.continueAsNewSuggested || run.aborting) return;
  if (Date.now() - info.runStartTime.getTime() >= minRunMs) throw new RollOver();
}

/**
 * A turn that broke off (a hook or a policy threw, an effect failed for good) still ends in the log: what it was to
 * write is written, open calls get a result, and a reply that never came is replaced by one with the error, as pi does.
 * @returns what was not written, when the run id was used before
 */
async function endBrokenTurn(
  state: SessionState,
  run: RunState,
  failure: unknown,
): Promise<readonly NewRecord[] | undefined> {
  if (failedByAbort(run, failure)) beginAbort(state, run);
  const entryId = assistantEntryId(run.runId, run.turn);
  const reason = run.aborting ? 'Operation aborted' : errorInfoOf(failure).message;
  const ended = state.events.some(
    (record) => record.kind === 'event' && record.key === `${run.runId}/${run.turn}/turn_end`,
  );
  if (ended) {
    run.turn += 1;
    return undefined;
  }
  const message = unansweredReply(run.asking ?? state.model, {
    stopReason: run.aborting ? 'aborted' : 'error',
    errorMessage: reason,
    timestamp: Date.now(),
  });
  // A change of settings waits for the end of this turn too.
  const settings = state.entries.splice(0);
  const records: NewRecord[] = [
    ...turnRecords(state, run),
    { kind: 'entry', entry: { type: 'message', id: entryId, timestamp: new Date().toISOString(), message } },
  ];
  state.entries.push(...settings);
  const settleOpen = { entryId, outcome: run.aborting ? 'aborted' : 'failed', reason } as const;
  const closed = await append(state, {
    runId: run.runId,
    turn: run.turn,
    records,
    settleOpen,
    ...(run.turn === 0 ? { openRun: run.token } : {}),
    wantMessage: true,
  });
  if (closed.duplicate) return records;
  run.pending = [];
  run.asking = null;
  state.events.push(turnEnd(run, closed.toolResults?.length ?? 0));
  run.turn += 1;
  return undefined;
}

/** agent_end, settled, and after an abort what it took out of the queues: one write, after which the run is closed. */
async function endRun(
  state: SessionState,
  run: RunState,
  status: RunStatus,
  error: ErrorInfo | undefined,
): Promise<void> {
  run.closing = true;
  // Messages that were taken out of a queue, and that no turn took along, wait for the next run.
  giveBack(state, { steer: run.pending.splice(0) });
  holdQueues(state.queues);
  const event = (name: string, body: Extract<NewRecord, { kind: 'event' }>['event']): NewRecord => ({
    kind: 'event',
    key: `${run.runId}/${name}`,
    event: body,
  });
  const records = [
    ...takeRecords(state),
    event('agent_end', { type: 'agent_end', status, ...(error === undefined ? {} : { error }) }),
    event('settled', { type: 'settled', nextTurnCount: state.queues.nextTurn.length }),
  ];
  if (status === 'aborted') {
    records.push(
      event('abort', { type: 'abort', clearedSteer: run.cleared.steer, clearedFollowUp: run.cleared.followUp }),
    );
  }
  const closeRun: AppendInput['closeRun'] = { status, ...(error === undefined ? {} : { error }) };
  await append(state, { runId: run.runId, records, closeRun });
  state.ended.push({ runId: run.runId, status });
  state.counts.runs += 1;
  // What a policy changed was for this run.
  Object.assign(state, run.sessionSettings);
  state.run = null;
}

import { hash } from 'node:crypto';
import type { Agent } from '../agent/agent.ts';
import type { Tool, ToolContext } from '../agent/tool.ts';
import { validateArguments } from '../agent/validate-arguments.ts';
import type { ToolInput, ToolResult } from '../common/effects.ts';
import { EverturnError, errorText, isEverturnError } from '../common/errors.ts';
import type { ToolOutcomeKind } from '../common/events.ts';
import { toolResultEntryId } from '../common/ids.ts';
import { canonicalJson, type Json } from '../common/json.ts';
import type { AssistantMessage, ToolCall } from '../common/messages.ts';
import { toTotals } from '../common/usage.ts';
import { withCaller } from '../hooks/current-signal.ts';
import type { ClaimResult, Commit, SettledCall } from '../store/types.ts';
import { readJson } from './blobs.ts';
import { type Effect, effectSession, runEffect, type StopReason } from './effect.ts';
import { callerOf } from './hooks/run-hook.ts';
import { hasResultHooks, patchUpdate, patchWithHooks } from './hooks/tool-hooks.ts';
import { once } from './once.ts';
import { agentOf, type Runtime } from './runtime.ts';
import { callAt, hookContext, readReply } from './tools/call.ts';
import { notEnteredText, startRecord, textOutcome, toResultMessage } from './tools/outcome.ts';
import { checked, type Executed, runTool } from './tools/run-tool.ts';

/**
 * One call of a tool. The claim is written as the effect begins and before the tool is entered, the result (after
 * afterToolCall) with the event and, once the batch is complete, the messages: each in one transaction. A worker that dies
 * in between leaves the claim, and what happens then is the tool's replay kind. Only the patched result leaves this process.
 */
export function executeTool(runtime: Runtime, input: ToolInput): Promise<ToolResult> {
  const prepare = once(() => prepareCall(runtime, input));
  const place = {
    effect: `${input.entryId}/${input.index}/tool`,
    runId: input.runId,
    turn: input.turn,
    first: async (stopped: () => StopReason | undefined) => claimOf(input, await prepare(), stopped()),
  };
  return runEffect(runtime, place, async (effect) => {
    const { agent, message, call, target } = await prepare();
    const work: Work = { runtime, effect, agent, input, call };
    const claim = effect.begun.committed?.claim;
    if (claim?.state === 'settled') return toResult(work, claim.settled);
    // A run that is over has closed the call: settling finds what it was told.
    if (effect.stopReason() === 'abort' || effect.begun.runEnded)
      return settle(work, notEntered(call, claim !== undefined && wasEntered(claim)));
    if ('refused' in target) return settle(work, target.refused);
    if (claim === undefined || claim.state === 'withheld') throw stoppedBefore(call);
    const { tool, args } = target;
    const run = async () => patch(work, message, args as Record<string, unknown>, await enter(work, tool, args, claim));
    // The result is not kept before the hooks are through with it: what they are to take out of it must not reach the disk.
    // A worker that dies in a result hook is one that died in the tool.
    return settle(work, await (hasResultHooks(agent) ? effect.once('patched', run) : run()));
  });
}

/** What is known of a call before its effect begins. */
interface Prepared {
  agent: Agent;
  message: AssistantMessage;
  call: ToolCall;
  target: { tool: Tool; args: unknown } | { refused: Executed };
}

interface Work {
  runtime: Runtime;
  effect: Effect;
  agent: Agent;
  input: ToolInput;
  call: ToolCall;
}

async function prepareCall(runtime: Runtime, input: ToolInput): Promise<Prepared> {
  const agent = agentOf(runtime, input.agent);
  const message = await readReply(runtime, effectSession(), input.entryId);
  const call = callAt(message, input.index);
  const tool = agent.tools.find((candidate) => candidate.name === call.name);
  if (tool === undefined) {
    return { agent, message, call, target: { refused: failed('not_found', `Tool ${call.name} not found`) } };
  }
  // What a gate let through is what it looked at.
  const validated =
    input.args === undefined
      ? validateArguments(tool, call)
      : ({ ok: true, args: await readJson(runtime, input.args) } as const);
  const target = validated.ok
    ? { tool, args: validated.args }
    : { refused: failed('invalid_arguments', validated.reason) };
  return { agent, message, call, target };
}

function claimOf(input: ToolInput, { call, target }: Prepared, stopped: StopReason | undefined): Commit {
  if ('refused' in target) return {};
  return {
    claim: {
      entryId: input.entryId,
      index: input.index,
      toolName: target.tool.name,
      replay: target.tool.replay,
      argsDigest: hash('sha256', canonicalJson(target.args), 'hex'),
      start: startRecord(input.entryId, input.index, call),
      ...(stopped === undefined ? {} : { withhold: true }),
    },
  };
}

type Open = Exclude<ClaimResult, { state: 'settled' | 'withheld' }>;

/** Whether the tool may have taken effect: somebody was in it before this attempt. */
function wasEntered(claim: ClaimResult): boolean {
  return claim.state === 'again' || claim.state === 'unknown' || (claim.state === 'withheld' && claim.before);
}

function notEntered(call: ToolCall, before: boolean): Executed {
  return failed(before ? 'unknown' : 'aborted', notEnteredText('Operation aborted', call.name, before));
}

function stoppedBefore(call: ToolCall): EverturnError {
  return new EverturnError('cancelled', `The worker stopped before ${call.name} began.`, { retryable: true });
}

async function enter(work: Work, tool: Tool, args: unknown, claim: Open): Promise<Executed> {
  const { runtime, effect, input } = work;
  const timeout = AbortSignal.timeout(tool.timeoutMs);
  const signal = AbortSignal.any([effect.signal, timeout]);
  const context = toolContext(work, signal, claim);
  if (claim.state === 'unknown')
    return withCaller({ ...callerOf(effect), signal }, () => reconcile(tool, args, context, claim.progress));
  const executed = await withCaller({ ...callerOf(effect), signal }, () =>
    runTool(tool, args, context, { signal, graceMs: runtime.graceMs, reason: () => stopReason(effect, tool) }),
  );
  if (executed.outcome !== 'completed' && isLeftToNext(effect, tool)) {
    throw new EverturnError('cancelled', `The worker stopped while ${tool.name} ran.`, { retryable: true });
  }
  void executed.late?.then(
    (late) => keepLate(runtime, effect.fence.sessionId, input, lateOf(work, { result: late as unknown as Json })),
    (error: unknown) => keepLate(runtime, effect.fence.sessionId, input, lateOf(work, { error: errorText(error) })),
  );
  return { outcome: executed.outcome, result: executed.result, isError: executed.isError };
}

/** A worker that Temporal counts as lost leaves the word to the next attempt, which knows the claim and can reconcile. */
function isLeftToNext(effect: Effect, tool: Tool): boolean {
  const stopped = effect.stopReason();
  return stopped === 'lost' || (stopped === 'shutdown' && tool.replay !== 'never');
}

function stopReason(effect: Effect, tool: Tool): { outcome: ToolOutcomeKind; text: string } {
  if (effect.stopReason() === 'abort') return { outcome: 'aborted', text: 'Operation aborted' };
  if (effect.stopReason() !== undefined) return { outcome: 'unknown', text: 'The worker was shut down' };
  return { outcome: 'failed', text: `Tool ${tool.name} timed out after ${tool.timeoutMs} ms` };
}

function toolContext({ runtime, effect, agent, input, call }: Work, signal: AbortSignal, claim: Open): ToolContext {
  const { sessionId } = effect.fence;
  const entryId = toolResultEntryId(input.entryId, input.index);
  const live = runtime.deltas.open({ sessionId, runId: input.runId, entryId, attempt: effect.attempts });
  return {
    sessionId,
    runId: input.runId,
    toolCallId: call.id,
    // Ids of calls come from the provider and may repeat: the entry and the index do not.
    idempotencyKey: `${sessionId}/${entryId}`,
    attempt: claim.state === 'again' ? claim.entries : 1,
    signal,
    ...('progress' in claim && claim.progress !== undefined ? { lastProgress: claim.progress } : {}),
    onUpdate: (partial) => {
      const update = patchUpdate(agent, call, partial);
      if (update !== null) live.push({ type: 'tool_update', toolCallId: call.id, toolName: call.name, ...update });
    },
    progress: (note) => runtime.store.saveProgress(effect.fence, input.entryId, input.index, note),
  };
}

async function reconcile(
  tool: Tool,
  args: unknown,
  context: ToolContext,
  progress: Json | undefined,
): Promise<Executed> {
  let note = progress === undefined ? '' : ` It last reported: ${JSON.stringify(progress)}.`;
  if (tool.reconcile !== undefined) {
    try {
      const found = await tool.reconcile(args, context);
      if (found !== undefined)
        return await runTool({ ...tool, execute: async () => found }, args, context, {
          signal: context.signal,
          graceMs: 0,
          reason: () => ({ outcome: 'unknown', text: 'Interrupted' }),
        });
    } catch (error) {
      note += ` Finding out failed: ${errorText(error)}.`;
    }
  }
  return failed(
    'unknown',
    `Interrupted, outcome unknown: the worker was lost after ${tool.name} had started. It may or may not have taken effect.${note} Check before you do it again.`,
  );
}

/** Result hooks see only executions, as in pi: no call that was refused, and none whose outcome is unknown. */
async function patch(
  work: Work,
  assistantMessage: AssistantMessage,
  args: Record<string, unknown>,
  executed: Executed,
): Promise<Executed> {
  const { runtime, effect, agent, input, call } = work;
  if (!hasResultHooks(agent) || executed.outcome === 'unknown') return executed;
  const context = await hookContext(runtime, effect, agent, input);
  const { failed: threw, ...patched } = await patchWithHooks(
    effect,
    agent,
    { assistantMessage, call, args, context },
    executed,
  );
  if (threw) return { outcome: 'failed', ...patched };
  const sound = checked(`The result hooks of tool ${call.name}`, { ...patched.result, isError: patched.isError });
  return { ...sound, outcome: sound.isError === patched.isError ? executed.outcome : 'failed' };
}

async function settle(work: Work, executed: Executed): Promise<ToolResult> {
  const { runtime, effect, input, call } = work;
  const settled: SettledCall = {
    entryId: input.entryId,
    index: input.index,
    outcome: executed.outcome,
    result: executed.result,
    isError: executed.isError,
    timestamp: Date.now(),
    sequential: input.sequential === true,
    before: [startRecord(input.entryId, input.index, call)],
  };
  const result = toResult(work, settled);
  const { usage } = settled.result;
  void runtime.deltas.flush();
  try {
    const { leaf, settledBefore } = await effect.commit({
      settle: [settled],
      ...(usage === undefined ? {} : { usage: toTotals(usage) }),
      result: JSON.parse(JSON.stringify(result)),
    });
    // The workflow has closed the call meanwhile (this worker slept through an abort): what the model is told stays.
    const [told] = settledBefore ?? [];
    if (told !== undefined) {
      if (!isTrue(told)) await keepTrue(work, executed);
      return toResult(work, told);
    }
    // Of a single call the result is the leaf now: the next request, made here most likely, need not read it.
    const resultId = toolResultEntryId(input.entryId, input.index);
    if (input.index === 0 && leaf === resultId) {
      runtime.contexts.extend(effect.fence.sessionId, input.entryId, resultId, toResultMessage(call, settled));
    }
  } catch (error) {
    // Another attempt has settled the call meanwhile: the true result is kept beside what the model was told.
    if (isEverturnError(error, 'fenced')) await keepTrue(work, executed);
    throw error;
  }
  return result;
}

function toResult({ input, call }: Work, settled: SettledCall): ToolResult {
  const { usage, terminate } = settled.result;
  return {
    index: input.index,
    outcome: settled.outcome,
    terminate: terminate === true,
    ...(usage === undefined ? {} : { usage: toTotals(usage) }),
    ...(input.wantMessage ? { toolResult: toResultMessage(call, settled) } : {}),
  };
}

/** No result hook sees a late result, so with such hooks only the fact is kept. */
function lateOf({ agent }: Work, late: { result: Json } | { error: string }): Json {
  if (!hasResultHooks(agent)) return late;
  return { withheld: 'error' in late ? 'error' : 'result' };
}

/** What the tool really gave, beside what the model was told. */
async function keepTrue({ runtime, effect, input }: Work, executed: Executed): Promise<void> {
  if (!isTrue(executed)) return;
  await keepLate(runtime, effect.fence.sessionId, input, { result: executed.result as unknown as Json });
}

/** Whether the tool ended by itself: that it was stopped, or lost, is not its result. */
function isTrue({ outcome }: { outcome: ToolOutcomeKind }): boolean {
  return outcome === 'completed' || outcome === 'failed';
}

async function keepLate(runtime: Runtime, sessionId: string, input: ToolInput, late: Json): Promise<void> {
  try {
    await runtime.store.addLateResult(sessionId, input.entryId, input.index, late);
  } catch (error) {
    runtime.onNotice(`The late result of call ${input.entryId}/${input.index} could not be kept: ${errorText(error)}`);
  }
}

function failed(outcome: ToolOutcomeKind, text: string): Executed {
  return { outcome, result: textOutcome(text), isError: true };
}

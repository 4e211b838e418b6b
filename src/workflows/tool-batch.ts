import { type CallPlan, flags, type ModelResult, type RunPlace } from '../common/effects.ts';
import type { GateManifest, ToolManifest } from '../common/manifest.ts';
import type { ToolResultMessage } from '../common/messages.ts';
import { executeTool, gateOf } from './activities.ts';
import { append } from './append.ts';
import { failedByAbort } from './failures.ts';
import { beginAbort } from './queues.ts';
import { openedOf, type RunState, type SessionState } from './state.ts';

/** At most this many tools of one batch run at once: all arguments of one workflow task count against the server's limit. */
const windowSize = 16;

const unknownTool: ToolManifest = {
  name: '',
  description: '',
  replay: 'never',
  executionMode: 'parallel',
  timeoutMs: 600_000,
  heartbeatTimeoutMs: 15_000,
  local: false,
};

export interface BatchOutcome {
  /** True when every call asked for the end of the run. */
  terminate: boolean;
  /** In source order, when a policy wants them. */
  toolResults: ToolResultMessage[];
}

interface Batch {
  state: SessionState;
  run: RunState;
  place: RunPlace;
  reply: ModelResult;
  gate: GateManifest | null;
  wantMessage: boolean;
  settled: Map<number, CallPlan>;
}

/**
 * The calls of one reply, in pi's order (pi-semantics §1.5). Parallel: every gate in source order before anything runs,
 * then all that passed. Sequential: gate and tool, call by call. After an abort nothing is started, and every call that
 * has no result gets one, so that the next request is valid.
 */
export function runToolBatch(
  state: SessionState,
  run: RunState,
  reply: ModelResult,
  wantMessage: boolean,
): Promise<BatchOutcome> {
  const { manifest } = openedOf(state);
  const settled = new Map(reply.calls.filter((call) => call.state === 'settled').map((call) => [call.index, call]));
  const batch: Batch = {
    state,
    run,
    place: { agent: manifest.agent, runId: run.runId, turn: run.turn },
    reply,
    gate: manifest.hooks.beforeToolCall ?? (reply.gate ? { handlers: 0, local: true } : null),
    wantMessage,
    settled,
  };
  return runCalls(batch).then(
    () => endOf(batch),
    (error: unknown) => {
      if (!failedByAbort(run, error)) throw error;
      beginAbort(state, run);
      return endOf(batch);
    },
  );
}

/** The plainest batch makes few promises: each costs a stack trace in a workflow. */
function runCalls(batch: Batch): Promise<void> {
  const { reply, run, gate } = batch;
  const open = reply.calls.filter((call) => call.state === 'ready');
  const [only] = open;
  if (only !== undefined && open.length === 1 && gate === null && !run.aborting) return execute(batch, only);
  return reply.sequential ? runSequentially(batch, open) : runInParallel(batch, open);
}

async function runSequentially(batch: Batch, calls: CallPlan[]): Promise<void> {
  for (const call of calls) {
    if (batch.run.aborting) return;
    const [ready] = batch.gate === null ? [call] : await passGate(batch, batch.gate, [call]);
    if (ready !== undefined && !batch.run.aborting) await execute(batch, ready);
  }
}

async function runInParallel(batch: Batch, calls: CallPlan[]): Promise<void> {
  const waiting = batch.gate === null ? [...calls] : await passGate(batch, batch.gate, calls);
  let failure: unknown;
  const lane = async (): Promise<void> => {
    for (let call = waiting.shift(); call !== undefined; call = waiting.shift()) {
      if (batch.run.aborting || failure !== undefined) return;
      try {
        await execute(batch, call);
      } catch (error) {
        // The other calls of the batch keep their results: only then is the first trouble reported.
        failure ??= error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(windowSize, waiting.length) }, lane));
  if (failure !== undefined) throw failure;
}

async function passGate(batch: Batch, gate: GateManifest, calls: CallPlan[]): Promise<CallPlan[]> {
  const { place, reply, wantMessage } = batch;
  if (calls.length === 0) return [];
  batch.state.counts.effects += 1;
  const decided = await gateOf(gate).beforeToolCall({
    ...place,
    entryId: reply.entryId,
    handlers: gate.handlers,
    indexes: calls.map((call) => call.index),
    ...flags({ sequential: reply.sequential, wantMessage }),
  });
  for (const call of decided.calls) if (call.state === 'settled') batch.settled.set(call.index, call);
  return decided.calls.filter((call) => call.state === 'ready');
}

function execute(batch: Batch, call: CallPlan): Promise<void> {
  const { state, place, reply, wantMessage } = batch;
  const known = openedOf(state).manifest.tools.find((candidate) => candidate.name === call.name);
  // A deploy may bring a tool that the session was not opened with: it is run with the most careful settings.
  const tool = known ?? { ...unknownTool, name: call.name };
  state.counts.effects += 1;
  const args = call.args === undefined ? {} : { args: call.args };
  const input = {
    ...place,
    entryId: reply.entryId,
    index: call.index,
    ...flags({ sequential: reply.sequential, wantMessage }),
    ...args,
  };
  return executeTool(tool, input).then(({ terminate, toolResult }) => {
    const told = toolResult === undefined ? {} : { toolResult };
    batch.settled.set(call.index, { ...call, state: 'settled', terminate, ...told });
  });
}

/** A call that has no result by now was cut off by an abort. */
function endOf(batch: Batch): BatchOutcome | Promise<BatchOutcome> {
  return batch.settled.size < batch.reply.calls.length ? settleAborted(batch) : outcomeOf(batch);
}

async function settleAborted(batch: Batch): Promise<BatchOutcome> {
  const { state, run, reply, wantMessage } = batch;
  const { entryId, sequential } = reply;
  const settleOpen = { entryId, outcome: 'aborted', reason: 'Operation aborted', ...flags({ sequential }) } as const;
  const closed = await append(state, { runId: run.runId, turn: run.turn, records: [], settleOpen, wantMessage });
  return { terminate: false, toolResults: closed.toolResults ?? [] };
}

function outcomeOf(batch: Batch): BatchOutcome {
  const calls = batch.reply.calls.map((call) => batch.settled.get(call.index));
  return {
    terminate: calls.length > 0 && calls.every((call) => call?.terminate === true),
    toolResults: calls.flatMap((call) => (call?.toolResult === undefined ? [] : [call.toolResult])),
  };
}

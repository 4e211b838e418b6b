import type { Agent } from '../../agent/agent.ts';
import type { Tool } from '../../agent/tool.ts';
import { validateArguments } from '../../agent/validate-arguments.ts';
import { type CallPlan, flags, type ModelInput, type ModelResult } from '../../common/effects.ts';
import type { ErrorInfo } from '../../common/errors.ts';
import type { NewRecord, ToolOutcomeKind } from '../../common/events.ts';
import { toolResultEntryId } from '../../common/ids.ts';
import { type AssistantMessage, type ToolCall, toolCallsOf } from '../../common/messages.ts';
import { noUsage, toTotals } from '../../common/usage.ts';
import type { Commit, SettledCall } from '../../store/types.ts';
import { startRecord, textOutcome, toResultMessage } from '../tools/outcome.ts';
import { activeToolsOf } from './build-request.ts';

const truncatedText =
  'The call was not executed: the output limit cut the message, so the arguments may be incomplete. Issue the call again with complete arguments.';

/**
 * The one transaction that a reply becomes: the message, its batch, the starts of its calls, and the results of calls
 * that cannot run (unknown tool, invalid arguments, cut by the output limit), in pi's order. Where a gate follows, the
 * gate does that call by call.
 */
export function replyCommit(
  agent: Agent,
  input: ModelInput,
  message: AssistantMessage,
  error: ErrorInfo | undefined,
  now: number,
): { commit: Commit; result: ModelResult } {
  const failed = message.stopReason === 'error' || message.stopReason === 'aborted';
  const calls = failed ? [] : toolCallsOf(message);
  const tools = activeToolsOf(agent, input.activeTools);
  const sequential = isSequential(agent, tools, calls);
  const settle: SettledCall[] = [];
  let starts: NewRecord[] = [];
  const refusals = calls.map((call) => refusalOf(tools, call, message.stopReason, input.gated === true));
  // One by one, a refused call ends when its turn comes: not here, but in the gate.
  const gate = sequential && message.stopReason !== 'length' && refusals.some((refusal) => refusal !== undefined);
  const plans = calls.map((call, index): CallPlan => {
    const refusal = gate ? undefined : refusals[index];
    if (refusal === undefined) {
      if (!input.gated && !sequential) starts.push(startRecord(input.entryId, index, call));
      return { index, name: call.name, state: 'ready' };
    }
    const settled = {
      entryId: input.entryId,
      index,
      ...refusal,
      timestamp: now,
      // Calls that the output limit cut end one by one, as in pi.
      sequential: sequential || message.stopReason === 'length',
      before: [...starts, startRecord(input.entryId, index, call)],
    };
    starts = [];
    settle.push(settled);
    return {
      index,
      name: call.name,
      state: 'settled',
      terminate: false,
      ...(input.wantMessage ? { toolResult: toResultMessage(call, settled) } : {}),
    };
  });
  const usage = toTotals(message.usage);
  const result: ModelResult = {
    entryId: input.entryId,
    leaf: null,
    stopReason: message.stopReason,
    calls: plans,
    ...flags({ sequential, gate }),
    usage: usage.totalTokens === 0 ? noUsage : usage,
    ...(error === undefined ? {} : { error }),
    ...(input.wantMessage ? { message } : {}),
  };
  const entry: NewRecord = {
    kind: 'entry',
    entry: { type: 'message', id: input.entryId, timestamp: new Date(now).toISOString(), message },
  };
  return {
    commit: {
      records: [entry],
      usage,
      ...(calls.length === 0 ? {} : { batch: batchOf(input.entryId, calls), settle, after: starts }),
    },
    result,
  };
}

/** pi's rule: the agent says so, or any called tool does. */
function isSequential(agent: Agent, tools: readonly Tool[], calls: readonly ToolCall[]): boolean {
  const called = tools.filter((tool) => calls.some((call) => call.name === tool.name));
  return agent.toolExecution === 'sequential' || called.some((tool) => tool.executionMode === 'sequential');
}

type Refusal = Pick<SettledCall, 'outcome' | 'result' | 'isError'>;

function refusalOf(
  tools: readonly Tool[],
  call: ToolCall,
  stopReason: AssistantMessage['stopReason'],
  gated: boolean,
): Refusal | undefined {
  const refuse = (outcome: ToolOutcomeKind, text: string): Refusal => ({
    outcome,
    result: textOutcome(text),
    isError: true,
  });
  if (stopReason === 'length') return refuse('truncated', truncatedText);
  if (gated) return undefined;
  const tool = tools.find((candidate) => candidate.name === call.name);
  if (tool === undefined) return refuse('not_found', `Tool ${call.name} not found`);
  const validated = validateArguments(tool, call);
  return validated.ok ? undefined : refuse('invalid_arguments', validated.reason);
}

function batchOf(entryId: string, calls: readonly ToolCall[]): NonNullable<Commit['batch']> {
  return {
    entryId,
    calls: calls.map((call, index) => ({
      index,
      toolCallId: call.id,
      toolName: call.name,
      resultEntryId: toolResultEntryId(entryId, index),
      args: call.arguments,
    })),
  };
}

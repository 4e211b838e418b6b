import type { Agent } from '../agent/agent.ts';
import { gateHandlers } from '../agent/manifest.ts';
import { validateArguments } from '../agent/validate-arguments.ts';
import type { CallPlan, GateInput, GateResult } from '../common/effects.ts';
import type { ToolOutcomeKind } from '../common/events.ts';
import { canonicalJson } from '../common/json.ts';
import type { AssistantMessage, ToolCall } from '../common/messages.ts';
import type { AgentContext } from '../common/policy.ts';
import type { SettledCall } from '../store/types.ts';
import { putJson } from './blobs.ts';
import { type Effect, effectSession, runEffect } from './effect.ts';
import { passGates } from './hooks/tool-hooks.ts';
import { once } from './once.ts';
import { agentOf, type Runtime } from './runtime.ts';
import { callAt, hookContext, readReply } from './tools/call.ts';
import { startRecord, textOutcome, toResultMessage } from './tools/outcome.ts';

/**
 * The gate before tools: for each call in source order its start, argument validation, beforeToolCall and tool_call. What
 * was decided for a call is kept before the next one is looked at, so a worker that dies in a hook repeats that one hook.
 */
export function beforeToolCall(runtime: Runtime, input: GateInput): Promise<GateResult> {
  const [firstIndex = 0] = input.indexes;
  const lastIndex = input.indexes.at(-1);
  const reply = once(() => readReply(runtime, effectSession(), input.entryId));
  const place = {
    effect: `${input.entryId}/gate/${firstIndex}`,
    runId: input.runId,
    turn: input.turn,
    first: async () => ({ records: [startRecord(input.entryId, firstIndex, callAt(await reply(), firstIndex))] }),
  };
  return runEffect(runtime, place, async (effect) => {
    const agent = agentOf(runtime, input.agent);
    const message = await reply();
    const context = await hookContext(runtime, effect, agent, input);
    const calls: CallPlan[] = [];
    for (const index of input.indexes) {
      const call = callAt(message, index);
      if (index !== firstIndex) await effect.commit({ records: [startRecord(input.entryId, index, call)] });
      const decide = () => decideCall({ runtime, effect, agent, input, message, call, index, context });
      // The last decision is kept with the gate's own outcome.
      const decision = index === lastIndex ? await decide() : await effect.once(`call/${index}`, decide);
      const refused = 'args' in decision ? undefined : refusalOf(input, index, decision);
      calls.push(planOf(input, call, index, decision, refused));
      const settle = refused === undefined ? [] : [refused];
      if (index === lastIndex) {
        const { adopted } = await effect.commit({ settle, result: JSON.parse(JSON.stringify({ calls })) });
        // A local gate may be asked twice at once: what was stored first counts for both.
        if (adopted !== undefined) return adopted as unknown as GateResult;
      } else if (refused !== undefined) await effect.commit({ settle });
    }
    return { calls };
  });
}

interface CallToDecide {
  runtime: Runtime;
  effect: Effect;
  agent: Agent;
  input: GateInput;
  message: AssistantMessage;
  call: ToolCall;
  index: number;
  context: AgentContext;
}

type Decision = { args: { args?: string } } | { outcome: ToolOutcomeKind; reason: string };

async function decideCall({
  runtime,
  effect,
  agent,
  input,
  message,
  call,
  index,
  context,
}: CallToDecide): Promise<Decision> {
  if (effect.stopReason() === 'abort') return aborted;
  // The tools of the reply's request count, whatever was set since.
  const offered = context.tools?.some(({ name }) => name === call.name);
  const tool = offered ? agent.tools.find((candidate) => candidate.name === call.name) : undefined;
  if (tool === undefined) return { outcome: 'not_found', reason: `Tool ${call.name} not found` };
  const validated = validateArguments(tool, call);
  if (!validated.ok) return { outcome: 'invalid_arguments', reason: validated.reason };
  if (gateHandlers(agent) < input.handlers) {
    return {
      outcome: 'blocked',
      reason: 'A gate of this agent is not available on this worker, so the call was not let through.',
    };
  }
  const args = validated.args as Record<string, unknown>;
  const before = canonicalJson(args);
  const verdict = await passGates(effect, agent, { assistantMessage: message, call, args, context }, index);
  // Abort wins over what the hooks say.
  if (effect.stopReason() === 'abort') return aborted;
  if (!verdict.pass) return { outcome: verdict.failed ? 'failed' : 'blocked', reason: verdict.reason };
  return { args: canonicalJson(args) === before ? {} : { args: await putJson(runtime, args) } };
}

const aborted: Decision = { outcome: 'aborted', reason: 'Operation aborted' };

function refusalOf(
  input: GateInput,
  index: number,
  { outcome, reason }: { outcome: ToolOutcomeKind; reason: string },
): SettledCall {
  return {
    entryId: input.entryId,
    index,
    outcome,
    result: textOutcome(reason),
    isError: true,
    timestamp: Date.now(),
    sequential: input.sequential === true,
  };
}

function planOf(
  input: GateInput,
  call: ToolCall,
  index: number,
  decision: Decision,
  refused: SettledCall | undefined,
): CallPlan {
  const { name } = call;
  if (refused === undefined) return { index, name, state: 'ready', ...('args' in decision ? decision.args : {}) };
  const toolResult = input.wantMessage ? { toolResult: toResultMessage(call, refused) } : {};
  return { index, name, state: 'settled', terminate: false, ...toolResult };
}

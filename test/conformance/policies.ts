import { defineQuery, setHandler, workflowInfo } from '@temporalio/workflow';
import {
  type AgentLoopTurnUpdate,
  definePolicy,
  type Policy,
  type ShouldStopAfterTurnContext,
} from 'everturn/workflows';
import { marksOf, nextTurnOf, type PolicyCall, type PolicyMoment, policyCall } from './policy-script.ts';
import { agentName, allLoopHooks, policyKinds } from './scenario.ts';

/** Workflow code: the policies of every agent of the loop layer, and a query for what they were asked. */
const calls = new Map<string, PolicyCall[]>();
const policyCallsQuery = defineQuery<PolicyCall[]>('policyCalls');

function note(hook: PolicyCall['hook'], context: ShouldStopAfterTurnContext): void {
  const { workflowId } = workflowInfo();
  const noted = calls.get(workflowId) ?? [];
  calls.set(workflowId, [...noted, policyCall(hook, context as PolicyMoment)]);
  setHandler(policyCallsQuery, () => calls.get(workflowId) ?? []);
}

function shouldStopAfterTurn(context: ShouldStopAfterTurnContext): boolean {
  note('shouldStopAfterTurn', context);
  return marksOf(context.message.content).stop;
}

function prepareNextTurn(context: ShouldStopAfterTurnContext): AgentLoopTurnUpdate | undefined {
  note('prepareNextTurn', context);
  const update = nextTurnOf({ message: context.message, context: context.context as PolicyMoment['context'] });
  if (update === undefined) return undefined;
  const { level, ...rest } = update;
  return { ...rest, ...(level === undefined ? {} : { thinkingLevel: level }) } as AgentLoopTurnUpdate;
}

const policies: Record<string, Policy> = {
  stop: { shouldStopAfterTurn },
  prepare: { prepareNextTurn },
  both: { shouldStopAfterTurn, prepareNextTurn },
};

// Few: every workflow of the suite loads them.
for (const policy of policyKinds) {
  const answers = policies[policy];
  if (answers === undefined) continue;
  for (const toolExecution of ['parallel', 'sequential'] as const) {
    for (const hooks of [allLoopHooks(true), allLoopHooks(false)])
      definePolicy(agentName({ layer: 'loop', toolExecution, hooks, policy }), answers);
  }
}

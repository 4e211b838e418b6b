import { Context } from '@temporalio/activity';
import type { Agent } from '../agent/agent.ts';
import { manifestOf } from '../agent/manifest.ts';
import type { OpenSessionInput, OpenSessionResult } from '../common/effects.ts';
import { EverturnError } from '../common/errors.ts';
import { isLivingRun, toFailure } from './effect.ts';
import { checkModelAuth, resolveModel } from './model/resolve-model.ts';
import { agentOf, type Runtime } from './runtime.ts';

/**
 * Opens the session for this workflow run: a new epoch, an honest end for what earlier owners left open. What can be
 * wrong with agent, model and key is found here, before anything of the run is written.
 */
export async function openSession(runtime: Runtime, input: OpenSessionInput): Promise<OpenSessionResult> {
  try {
    const agent = agentOf(runtime, input.agent);
    const { workflowExecution } = Context.current().info;
    if (workflowExecution === undefined) throw new EverturnError('internal', 'openSession runs in a workflow only');
    const { workflowId: sessionId, runId: workflowRunId } = workflowExecution;
    await checkKnownSession(runtime, sessionId, workflowRunId, input.agent);
    const opened = await runtime.store.openSession({
      sessionId,
      workflowRunId,
      defaults: defaultsOf(agent, input),
      ...(input.continuingRunId === undefined ? {} : { continuingRunId: input.continuingRunId }),
    });
    await checkModel(runtime, { model: opened.model });
    const { epoch, leaf, model, thinkingLevel, activeTools } = opened;
    return { epoch, leaf, model, thinkingLevel, activeTools, manifest: manifestOf(agent) };
  } catch (error) {
    throw toFailure(error, Context.current().info.attempt, undefined);
  }
}

/** @throws EverturnError `unknown_model` or `no_api_key` */
export async function checkModel(runtime: Runtime, { model }: { model: string }): Promise<void> {
  await checkModelAuth(runtime.models, resolveModel(runtime.models, model));
}

function defaultsOf(agent: Agent, input: OpenSessionInput): Parameters<Runtime['store']['openSession']>[0]['defaults'] {
  const names = agent.tools.map((tool) => tool.name);
  const unknown = input.activeTools?.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    throw new EverturnError(
      'unknown_tool',
      `Agent "${agent.name}" has no tool "${unknown}", it has: ${names.join(', ') || 'none'}.`,
    );
  }
  const activeTools = input.activeTools ?? agent.activeTools;
  return {
    agent: agent.name,
    model: input.model ?? agent.model,
    thinkingLevel: input.thinkingLevel ?? agent.thinkingLevel,
    activeTools: activeTools === null ? null : [...activeTools],
  };
}

/**
 * A session that is there already has its own agent. And a start that was held up on a stalled worker must not end what a
 * later workflow run of the session is doing.
 */
async function checkKnownSession(
  runtime: Runtime,
  sessionId: string,
  workflowRunId: string,
  agent: string,
): Promise<void> {
  const session = await runtime.store.readSession(sessionId);
  if (session === undefined) return;
  if (session.agent !== agent) {
    throw new EverturnError(
      'invalid_argument',
      `Session "${sessionId}" belongs to agent "${session.agent}", not "${agent}". Use another session id.`,
    );
  }
  if (await isLivingRun(sessionId, workflowRunId)) return;
  throw new EverturnError('fenced', `Session "${sessionId}" has a later workflow run: this one must stop.`);
}

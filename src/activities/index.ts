import { Context } from '@temporalio/activity';
import type { Effects, LocalEffects } from '../common/effects.ts';
import { append } from './append.ts';
import { beforeAgentStart, expandPrompt } from './before-agent-start.ts';
import { beforeToolCall } from './before-tool-call.ts';
import { loadContext, pollQueueHook, saveContext } from './context.ts';
import { toFailure } from './effect.ts';
import { executeTool } from './execute-tool.ts';
import { inputDigest, inputDigestKey } from './input-digest.ts';
import { checkModel, openSession } from './open-session.ts';
import type { Runtime } from './runtime.ts';
import { streamAssistantResponse } from './stream-assistant-response.ts';

/** The activities of a worker, by the names that workflows call. */
export function createActivities(runtime: Runtime): Effects & LocalEffects {
  return {
    openSession: (input) => openSession(runtime, input),
    streamAssistantResponse: (input) => streamAssistantResponse(runtime, input),
    beforeAgentStart: (input) => told(input, beforeAgentStart(runtime, input)),
    expandPrompt: (input) => typed(expandPrompt(runtime, input)),
    beforeToolCall: (input) => told(input, beforeToolCall(runtime, input)),
    executeTool: (input) => told(input, executeTool(runtime, input)),
    pollQueueHook: (input) => pollQueueHook(runtime, input),
    loadContext: (input) => loadContext(runtime, input),
    saveContext: (input) => saveContext(runtime, input),
    checkModel: (input) => typed(checkModel(runtime, input)),
    append: (input) => told(input, append(runtime, input)),
  };
}

/** What a local activity was given is not in history: a replay compares it by this digest (`replayHistory`). */
async function told<T extends object>(input: unknown, result: Promise<T>): Promise<T> {
  const value = await result;
  return Context.current().info.isLocal ? { ...value, [inputDigestKey]: inputDigest(input) } : value;
}

/** For effects that write nothing. */
function typed<T>(result: Promise<T>): Promise<T> {
  return result.catch((error: unknown) => Promise.reject(toFailure(error, Context.current().info.attempt, undefined)));
}

export { ControlWatcher } from './control-watcher.ts';
export { Recent } from './recent.ts';
export type { Runtime } from './runtime.ts';

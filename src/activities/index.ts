import type { Effects, LocalEffects } from '../common/effects.ts';
import { append } from './append.ts';
import { beforeAgentStart, expandPrompt } from './before-agent-start.ts';
import { beforeToolCall } from './before-tool-call.ts';
import { loadContext, pollQueueHook, saveContext } from './context.ts';
import { executeTool } from './execute-tool.ts';
import { checkModel, openFailure, openSession } from './open-session.ts';
import type { Runtime } from './runtime.ts';
import { streamAssistantResponse } from './stream-assistant-response.ts';

/** The activities of a worker, by the names that workflows call. */
export function createActivities(runtime: Runtime): Effects & LocalEffects {
  return {
    openSession: (input) => openSession(runtime, input),
    streamAssistantResponse: (input) => streamAssistantResponse(runtime, input),
    beforeAgentStart: (input) => beforeAgentStart(runtime, input),
    expandPrompt: (input) => expandPrompt(runtime, input).catch((error: unknown) => Promise.reject(openFailure(error))),
    beforeToolCall: (input) => beforeToolCall(runtime, input),
    executeTool: (input) => executeTool(runtime, input),
    pollQueueHook: (input) => pollQueueHook(runtime, input),
    loadContext: (input) => loadContext(runtime, input),
    saveContext: (input) => saveContext(runtime, input),
    checkModel: (input) => checkModel(runtime, input).catch((error: unknown) => Promise.reject(openFailure(error))),
    append: (input) => append(runtime, input),
  };
}

export { ControlWatcher } from './control-watcher.ts';
export type { Runtime } from './runtime.ts';

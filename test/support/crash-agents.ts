import { type Agent, type AgentOptions, defineAgent } from '../../src/agent/agent.ts';
import { textOf } from '../../src/common/messages.ts';
import type { AgentHooks } from '../../src/hooks/types.ts';
import { type CrashToolsOptions, crashTools } from './crash-tools.ts';

/** Log of the gate: a line with `what: 'asked'` for each call of beforeToolCall, one with `passed` when it lets go. */
export const gateLog = 'gate.log';
/** While this file is there the gate holds every call; `<call id>.at-gate` says that it does. */
export const holdGateFile = 'hold-gate';
/** Log of transformContext, one line for each call. */
export const transformLog = 'transform.log';

/** `plain` has no hooks, `brief` does not linger, `gated` and `transforming` have the hook, `hooked` has both. */
export type CrashAgent = 'plain' | 'brief' | 'gated' | 'transforming' | 'hooked';

/** The agents of the crash tests: one scripted model, the same tools, and hooks that leave evidence. */
export function crashAgents(options: CrashToolsOptions): Agent[] {
  const tools = crashTools(options);
  const agent = (name: CrashAgent, extra: Partial<AgentOptions> = {}) =>
    defineAgent({
      name,
      model: 'scripted/main',
      // Hooks learn from it which session they are called for.
      systemPrompt: ({ sessionId }) => sessionId,
      tools,
      retry: { baseDelayMs: 50 },
      ...extra,
    });
  const beforeToolCall = gate(options);
  const transformContext = transform(options);
  return [
    agent('plain'),
    agent('brief', { lingerMs: 1 }),
    agent('gated', { beforeToolCall }),
    agent('transforming', { transformContext }),
    agent('hooked', { beforeToolCall, transformContext }),
  ];
}

function gate({ of }: CrashToolsOptions): NonNullable<AgentHooks['beforeToolCall']> {
  return async ({ toolCall, args, context }, signal) => {
    const evidence = of(context.systemPrompt);
    evidence.note(gateLog, { what: 'asked', toolCallId: toolCall.id });
    if (evidence.has(holdGateFile)) evidence.put(`${toolCall.id}.at-gate`);
    await evidence.untilGone(holdGateFile, signal);
    evidence.note(gateLog, { what: 'passed', toolCallId: toolCall.id });
    return (args as { progress?: string }).progress === 'forbidden'
      ? { block: true, reason: 'not this one' }
      : undefined;
  };
}

/** Says in the context how often it was asked, so that a second call for the same request would be seen. */
function transform({ of }: CrashToolsOptions): NonNullable<AgentHooks['transformContext']> {
  return (messages) => {
    // A session's first message is its id.
    const evidence = of(textOf(messages[0] ?? {}));
    evidence.note(transformLog, { messages: messages.length });
    const text = `transformed ${evidence.read(transformLog).length}`;
    return [...messages, { role: 'user', content: [{ type: 'text', text }], timestamp: 0 }];
  };
}

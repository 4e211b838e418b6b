import { type Agent, defineAgent } from '../../src/agent/agent.ts';
import type { AgentHooks } from '../../src/hooks/types.ts';
import { crashTools } from './crash-tools.ts';
import type { Evidence } from './evidence.ts';

/** Log of the gate: a line with `what: 'asked'` for each call of beforeToolCall, one with `passed` when it lets go. */
export const gateLog = 'gate.log';
/** While this file is there the gate holds every call. */
export const holdGateFile = 'hold-gate';
/** Log of transformContext, one line for each call. */
export const transformLog = 'transform.log';

export interface CrashAgentOptions {
  /** Which hooks the agent has. Default: none. */
  hooks?: readonly ('gate' | 'transform')[];
  /** Task queue of the tool `effect_elsewhere`. Default: there is no such tool. */
  elsewhere?: string;
  /** Milliseconds. Default: 60,000. */
  lingerMs?: number;
}

/** The agent of the crash tests: a scripted model, and tools and hooks that leave evidence. */
export function crashAgent(evidence: Evidence, options: CrashAgentOptions = {}): Agent {
  const hooks = options.hooks ?? [];
  return defineAgent({
    name: 'crash',
    model: 'scripted/main',
    systemPrompt: 'You are under test.',
    tools: crashTools(evidence, options),
    lingerMs: options.lingerMs ?? 60_000,
    retry: { baseDelayMs: 50 },
    ...(hooks.includes('gate') ? { beforeToolCall: gate(evidence) } : {}),
    ...(hooks.includes('transform') ? { transformContext: transform(evidence) } : {}),
  });
}

function gate(evidence: Evidence): NonNullable<AgentHooks['beforeToolCall']> {
  return async ({ toolCall }, signal) => {
    evidence.note(gateLog, { what: 'asked', toolCallId: toolCall.id });
    if (evidence.has(holdGateFile)) evidence.put(`${toolCall.id}.at-gate`);
    await evidence.untilGone(holdGateFile, signal);
    evidence.note(gateLog, { what: 'passed', toolCallId: toolCall.id });
    return toolCall.name === 'throws' ? { block: true, reason: 'not this one' } : undefined;
  };
}

/** Says in the context how often it was asked, so that a second call for the same request would be seen. */
function transform(evidence: Evidence): NonNullable<AgentHooks['transformContext']> {
  return (messages) => {
    evidence.note(transformLog, { messages: messages.length });
    const text = `transformed ${evidence.read(transformLog).length}`;
    return [...messages, { role: 'user', content: [{ type: 'text', text }], timestamp: 0 }];
  };
}

import { type Agent, defineAgent } from '../../src/agent/agent.ts';
import { fromPiTool } from '../../src/agent/pi-tool.ts';
import { resources } from './moves.ts';
import { baseHeaders } from './pi-harness.ts';
import { loopHookOptions } from './pi-loop.ts';
import type { Play } from './play.ts';
import { agentName, baseSystemPrompt, loopHooks, type Setup } from './scenario.ts';
import { playTools } from './tools.ts';

/** Difference 16: hooks are tried three times by default, and pi tries once. So do these agents, by the setting for it. */
const once = { attempts: 1 };

/** The agent of a set-up, for all of its scenarios: `playOf` gives the one that is calling. */
export function playAgent(setup: Setup, playOf: () => Play): Agent {
  const common = {
    name: agentName(setup),
    model: 'play/main',
    systemPrompt: baseSystemPrompt,
    tools: playTools(playOf).map((tool) => fromPiTool(tool, { replay: 'never' })),
    streamOptions: { headers: baseHeaders },
    resources,
    lingerMs: 600_000,
  };
  if (setup.layer === 'harness') {
    const { steeringMode, followUpMode } = setup;
    const agent = defineAgent({ ...common, steeringMode, followUpMode });
    install(agent, setup, playOf);
    return agent;
  }
  const hookNames = loopHooks.flatMap((hook) =>
    hook === 'queueHooks' ? (['getSteeringMessages', 'getFollowUpMessages'] as const) : [hook],
  );
  return defineAgent({
    ...common,
    toolExecution: setup.toolExecution,
    hookSettings: Object.fromEntries(hookNames.map((hook) => [hook, once])),
    // The hooks are typed for both sides at once: loosely.
    ...(loopHookOptions(playOf, setup.hooks) as object),
  });
}

function install(agent: Agent, { handlers }: Extract<Setup, { layer: 'harness' }>, playOf: () => Play): void {
  const each = (count: number, register: (handler: number) => void) => {
    for (let handler = 0; handler < count; handler++) register(handler);
  };
  each(handlers.before_agent_start, (handler) =>
    agent.on('before_agent_start', async (event) => (await playOf().start(handler, event)) as never, once),
  );
  each(handlers.context, (handler) =>
    agent.on(
      'context',
      async ({ messages }) => {
        const answer = await playOf().context('context', handler, messages);
        return answer === undefined ? undefined : { messages: answer };
      },
      once,
    ),
  );
  each(handlers.before_provider_request, (handler) =>
    agent.on(
      'before_provider_request',
      async ({ model, streamOptions }) => (await playOf().request(handler, model, streamOptions)) as never,
      once,
    ),
  );
  each(handlers.before_provider_payload, (handler) =>
    agent.on('before_provider_payload', ({ model, payload }) => playOf().payload(handler, model, payload), once),
  );
  each(handlers.tool_call, (handler) =>
    agent.on(
      'tool_call',
      ({ toolCallId, toolName, input }) => playOf().gate('tool_call', handler, toolCallId, input, { toolName }),
      once,
    ),
  );
  each(handlers.tool_result, (handler) =>
    agent.on(
      'tool_result',
      async ({ type: _, toolCallId, ...seen }) =>
        (await playOf().result('tool_result', handler, toolCallId, seen)) as never,
      once,
    ),
  );
}

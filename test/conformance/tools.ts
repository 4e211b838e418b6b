import type { AgentTool } from '@earendil-works/pi-agent-core';
import type { PiAgentTool } from '../../src/agent/pi-tool.ts';
import type { Play } from './play.ts';
import { toolNames } from './scenario.ts';

const parameters = {
  type: 'object',
  properties: { text: { type: 'string' }, times: { type: 'number' } },
  required: ['text'],
};

/** The tools of every scenario: the same pi tools on both sides. Everturn takes them through its adapter. */
export function playTools(playOf: () => Play): (PiAgentTool & AgentTool)[] {
  return toolNames.map((name) => ({
    name,
    label: name,
    description: `Plays ${name}.`,
    // pi types schemas as TypeBox's; plain JSON Schema is one.
    parameters: parameters as never,
    ...(name === 'one_by_one' ? { executionMode: 'sequential' as const } : {}),
    ...(name === 'alias' ? { prepareArguments } : {}),
    execute: (id: string, params: unknown, signal?: AbortSignal, onUpdate?: (partial: never) => void) =>
      playOf().execute(id, name, params, signal, (partial) => onUpdate?.(partial as never)),
  }));
}

function prepareArguments(raw: unknown): never {
  const { says, ...rest } = raw as { says?: string };
  return (says === undefined ? rest : { ...rest, text: says }) as never;
}

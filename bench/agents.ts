import { type Agent, type AgentOptions, defineAgent, defineTool } from 'everturn';
import { z } from 'zod';
import { kilobyte, modelRef } from './model.ts';

/** An agent of the benchmark's model with the tool `echo`. */
export function echoAgent(name: string, options: { local?: boolean } & Partial<AgentOptions> = {}): Agent {
  const { local = false, ...rest } = options;
  const echo = defineTool({
    name: 'echo',
    description: 'Gives a kilobyte back.',
    parameters: z.object({ n: z.number() }),
    replay: 'safe',
    local,
    execute: () => kilobyte,
  });
  return defineAgent({ name, model: modelRef, tools: [echo], maxTurns: 100_000, ...rest });
}

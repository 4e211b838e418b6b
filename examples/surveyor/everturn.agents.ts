import { createSurveyor } from './agent.ts';

// For the command line: `everturn dev --agents examples/surveyor/everturn.agents.ts`.
const surveyor = await createSurveyor();

export const agents = [surveyor.agent];
export const { providers } = surveyor;

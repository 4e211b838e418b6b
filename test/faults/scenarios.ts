import type { ScriptedReply } from '../../src/testing/scripted-model.ts';
import type { FaultAgent } from './agents.ts';

/** What a session does that is disturbed. */
export interface Scenario {
  name: string;
  agent: FaultAgent;
  replies: ScriptedReply[];
  /** How its run ends undisturbed. Default: done. */
  status?: 'error';
}

/** The prompt of every session; the policy `switching` takes it as a wish. */
export const promptText = 'Take another model';

// Told rather than estimated: a result that reads otherwise must not show in the usage of the next reply.
const usage = { input: 10, output: 5 };

function calling(...names: string[]): ScriptedReply[] {
  return [
    { text: 'Let me look', calls: names.map((name) => ({ name })), usage },
    { text: 'It is done', usage },
  ];
}

export const scenarios: readonly Scenario[] = [
  { name: 'never', agent: 'plain', replies: calling('effect_never') },
  { name: 'safe', agent: 'plain', replies: calling('effect_safe') },
  { name: 'keyed', agent: 'plain', replies: calling('effect_keyed') },
  { name: 'parallel', agent: 'plain', replies: calling('effect_never', 'effect_safe', 'effect_keyed') },
  { name: 'sequential', agent: 'sequential', replies: calling('effect_never', 'effect_safe', 'effect_keyed') },
  { name: 'hooked', agent: 'hooked', replies: calling('effect_never') },
  { name: 'local', agent: 'local', replies: calling('read_local', 'effect_never') },
  { name: 'queues at once', agent: 'all', replies: calling('effect_safe') },
  { name: 'model choice', agent: 'switching', replies: calling('effect_safe') },
  { name: 'own context', agent: 'large', replies: calling('effect_safe') },
  {
    name: 'model error',
    agent: 'plain',
    status: 'error',
    replies: [...calling('effect_never').slice(0, 1), { error: '400 invalid_request: no', usage }],
  },
];

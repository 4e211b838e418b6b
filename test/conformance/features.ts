import type { EverturnObservation } from './everturn-play.ts';
import { marksOf, type PolicyCall } from './policy-script.ts';
import { actionPlaces, type Scenario } from './scenario.ts';

const each = (prefix: string, names: readonly string[]) => names.map((name) => `${prefix}${name}`);

/** What 200 scenarios must have exercised, each at least once. Everything else that was exercised is counted as well. */
export const requiredFeatures: readonly string[] = [
  ...[
    'several runs',
    'several handlers',
    'batch of several calls',
    'completion in another order',
    'sequential batch',
    'image',
  ],
  ...each('ended as ', ['done', 'error', 'aborted']),
  ...each('hook ', [
    'before_agent_start',
    'context',
    'before_provider_request',
    'before_provider_payload',
    'tool_call',
    'tool_result',
  ]),
  ...each('hook ', [
    'convertToLlm',
    'transformContext',
    'beforeToolCall',
    'afterToolCall',
    'getSteeringMessages',
    'getFollowUpMessages',
  ]),
  ...each('policy ', [
    'shouldStopAfterTurn',
    'prepareNextTurn',
    'stops',
    'changes the model',
    'changes the thinking level',
  ]),
  ...each('policy ', ['changes the context', 'changes the system prompt']),
  ...each('before_agent_start ', [
    'changes the system prompt',
    'adds a user message',
    'adds a custom message',
    'adds a note message',
  ]),
  ...each('context: ', ['dropFirst', 'add', 'throw']),
  ...each('transformContext: ', ['dropFirst', 'add']),
  ...each('convertToLlm: ', ['dropFirst', 'add']),
  ...each('before_provider_request: ', ['headers', 'metadata', 'cacheRetention', 'clear', 'throw']),
  ...each('before_provider_payload: ', ['replace', 'throw']),
  ...each('tool_call: ', ['pass', 'block', 'blockSilently', 'change', 'throw']),
  ...each('beforeToolCall: ', ['pass', 'block', 'blockSilently', 'change', 'throw']),
  ...each('tool_result: ', ['content', 'details', 'isError', 'notError', 'usage', 'terminate', 'throw']),
  ...each('afterToolCall: ', ['content', 'details', 'isError', 'notError', 'usage', 'terminate', 'throw']),
  ...each('stop: ', ['normal', 'length', 'error']),
  ...each('call of ', ['echo', 'alias', 'one_by_one', 'ghost']),
  ...['valid arguments', 'coerced arguments', 'extra arguments', 'invalid arguments'],
  ...['tool update', 'tool that throws', 'tool that terminates', 'thinking', 'throw of before_agent_start'],
  ...['prompt by skill', 'prompt by template'],
  ...['steer', 'followUp', 'nextTurn', 'abort', 'setModel', 'setThinkingLevel', 'setActiveTools', 'setQueueMode'],
  ...each('message in ', actionPlaces),
  ...each('abort in ', actionPlaces),
  ...['getSteeringMessages: messages', 'getFollowUpMessages: messages'],
];

/** What a scenario exercised: what its play marked, and what only its shape tells. */
export function featuresOf(scenario: Scenario, { features, policyCalls, ends }: EverturnObservation): Set<string> {
  const seen = new Set(features);
  const { setup, runs } = scenario;
  if (runs.length > 1) seen.add('several runs');
  if (setup.layer === 'harness' && Object.values(setup.handlers).some((count) => count > 1))
    seen.add('several handlers');
  const calls = runs.flatMap((run) => run.turns.map((turn) => turn.calls));
  if (calls.some((batch) => batch.some(({ rank }, index) => rank !== index))) seen.add('completion in another order');
  const isSequential = setup.layer === 'loop' && setup.toolExecution === 'sequential';
  if (calls.some((batch) => batch.length > 1 && (isSequential || batch.some(({ tool }) => tool === 'one_by_one'))))
    seen.add('sequential batch');
  if (runs.some(({ prompt }) => prompt.image)) seen.add('image');
  for (const { status } of ends) seen.add(status === 'rejected' ? 'ended as error' : `ended as ${status}`);
  for (const { hook, moment } of policyCalls as unknown as PolicyCall[]) {
    const marks = marksOf(moment.message.content);
    seen.add(`policy ${hook}`);
    if (hook === 'shouldStopAfterTurn' && marks.stop) seen.add('policy stops');
    if (hook !== 'prepareNextTurn') continue;
    if (marks.model !== undefined) seen.add('policy changes the model');
    if (marks.level !== undefined) seen.add('policy changes the thinking level');
    if (marks.keep !== undefined) seen.add('policy changes the context');
    if (marks.prompt) seen.add('policy changes the system prompt');
  }
  return seen;
}

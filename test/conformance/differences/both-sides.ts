import { afterAll, beforeAll, expect } from '@jest/globals';
import { compare, playOnPi } from '../compare.ts';
import { playBoth } from '../conformance.ts';
import { EverturnStage } from '../everturn-stage.ts';
import type { PlainMessage } from '../normal.ts';
import type { Observation } from '../observation.ts';
import { textIn } from '../policy-script.ts';
import { agentName, type Scenario, type Setup } from '../scenario.ts';

/** The suite's server and bundle. */
export function suiteOptions() {
  return { address: process.env.EVERTURN_TEST_TEMPORAL ?? '', codePath: process.env.EVERTURN_TEST_BUNDLE ?? '' };
}

/** A stage for the scenarios of a test file, which have these set-ups. */
export function useStage(...setups: Setup[]): () => EverturnStage {
  let stage: EverturnStage;
  const distinct = new Map(setups.map((setup) => [agentName(setup), setup]));
  beforeAll(async () => {
    stage = await EverturnStage.open(
      suiteOptions(),
      [...distinct.values()].map((setup) => ({ setup, level: 'off', runs: [] })),
    );
  });
  afterAll(() => stage.close());
  return () => stage;
}

/**
 * What bare pi and Everturn make of a scenario. Without the numbered differences they must disagree, with them they must
 * agree, and these numbers must be all that was applied.
 */
export async function bothSides(
  stage: EverturnStage,
  scenario: Scenario,
  numbers: number[],
): Promise<{ pi: Observation; everturn: Observation }> {
  const pi = await playOnPi(scenario, { bare: true });
  const { comparison, everturn } = await playBoth(stage, scenario);
  expect(compare(scenario, pi, everturn, { plain: true }).agree).toBe(false);
  expect(comparison.difference).toBe('');
  expect([...comparison.used].sort((left, right) => left - right)).toEqual(numbers);
  return { pi, everturn };
}

/** The transcript in words: "user: prompt 0", "assistant stop: reply 0.0", "result c0.0.0: …", and settings by their type. */
export function transcriptWords({ transcript }: Observation): string[] {
  return transcript.map(({ type, message }) =>
    type === 'message' ? messageWord(message as unknown as PlainMessage) : type,
  );
}

function messageWord(message: PlainMessage): string {
  const { role, stopReason, toolCallId, errorMessage, content } = message;
  const text = [textIn(content), errorMessage].filter(Boolean).join(' ');
  return `${[role === 'toolResult' ? 'result' : role, stopReason, toolCallId].filter(Boolean).join(' ')}: ${text}`;
}

/** Types of the events, without the stream of messages; of messages the end, by their role. */
export function eventWords({ events }: Observation): string[] {
  return events.flatMap(({ type, message, call }) => {
    if (type === 'message_start' || type === 'message_update') return [];
    if (type === 'message_end') return [(message as unknown as PlainMessage).role];
    return [call === undefined ? type : `${type} ${String(call)}`];
  });
}

/** Names of the hooks in the order of their calls. */
export function hookWords({ calls }: Observation): string[] {
  return calls.map(({ hook, call }) => (call === undefined ? hook : `${hook} ${call}`));
}

import { expect, test } from '@jest/globals';
import { calls, loop, scenario } from '../build.ts';
import { playOnPi } from '../compare.ts';
import type { Observation } from '../observation.ts';
import type { PolicyCall } from '../policy-script.ts';
import { bothSides, hookWords, transcriptWords, useStage } from './both-sides.ts';

const policies = loop({}, { policy: 'both' });
const queues = loop({ queueHooks: true });
const stage = useStage(policies, queues, loop());

const asked = ({ policyCalls }: Observation) => (policyCalls as unknown as PolicyCall[]).map(({ hook }) => hook);

test('difference 1: shouldStopAfterTurn is asked first, and prepareNextTurn only when the run goes on', async () => {
  const goesOn = { calls: calls({}), policy: { stop: false, level: 'high' as const } };
  const stops = { calls: calls({}), policy: { stop: true, level: 'low' as const } };
  const { pi, everturn } = await bothSides(stage(), scenario(policies, { turns: [goesOn, stops] }), [1]);
  expect(asked(pi)).toEqual(['prepareNextTurn', 'shouldStopAfterTurn', 'prepareNextTurn', 'shouldStopAfterTurn']);
  expect(asked(everturn)).toEqual(['shouldStopAfterTurn', 'prepareNextTurn', 'shouldStopAfterTurn']);
  expect(everturn.requests.map(({ reasoning }) => reasoning)).toEqual(['off', 'high']);
});

test('difference 2: three replies in a row that the output limit cut end the run, and pi asks on', async () => {
  const cut = { calls: calls({}), stop: 'length' as const };
  const script = scenario(loop(), { turns: [cut, cut, cut] });
  const pi = await playOnPi(script);
  const everturn = await stage().play(script);
  expect(pi.requests).toHaveLength(4);
  expect(pi.ends).toEqual([{ status: 'done' }]);
  expect(everturn.requests).toHaveLength(3);
  expect(everturn.ends).toEqual([{ status: 'error' }]);
  expect(transcriptWords(pi).length).toBe(transcriptWords(everturn).length + 1);
});

test('difference 5: the queue hooks are not asked while a run is being aborted', async () => {
  const script = scenario(queues, { turns: [{ calls: calls({ inTool: [{ do: 'abort' }] }) }] });
  const { pi, everturn } = await bothSides(stage(), script, [5, 51]);
  expect(hookWords(pi)).toEqual(['getSteeringMessages', 'execute c0.0.0', 'getSteeringMessages']);
  expect(hookWords(everturn)).toEqual(['getSteeringMessages', 'execute c0.0.0']);
});

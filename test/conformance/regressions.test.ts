import { expect, test } from '@jest/globals';
import { calls, harness, loop, scenario } from './build.ts';
import { playBoth } from './conformance.ts';
import { useStage } from './differences/both-sides.ts';
import { allLoopHooks, type Scenario } from './scenario.ts';

// What the generator has found, made small: each disagreed with pi once.

const plain = harness();
const thrower = harness({ context: 1 });
const gated = harness({ tool_call: 1 });
const sequential = loop({}, { toolExecution: 'sequential' });
const policies = loop(allLoopHooks(true), { policy: 'prepare' });
const both = loop({}, { policy: 'both' });
const stage = useStage(plain, thrower, gated, sequential, policies, both);

const idle = { calls: [], text: true };
const found: Record<string, Scenario> = {
  'calls that the output limit cut end one by one': scenario(plain, {
    turns: [{ stop: 'length', calls: calls({}, {}, {}) }],
  }),
  'a refused call of a sequential batch keeps its place among the others': scenario(sequential, {
    turns: [{ calls: calls({}, { tool: 'ghost' }, {}, { args: 'invalid' }) }],
  }),
  'what a policy sets holds for its run, and the next one begins with the settings of the session': scenario(
    policies,
    { turns: [{ calls: calls({}), policy: { stop: false, model: 'play/other', level: 'high' } }, idle] },
    { turns: [idle] },
  ),
  'tool hooks see the context that a policy has put in place': scenario(policies, {
    turns: [
      { calls: calls({}), policy: { stop: false, keep: 1, prompt: true }, steering: ['more'] },
      { calls: calls({}), policy: { stop: false, keep: 1 } },
      { calls: calls({}) },
    ],
  }),
  'a setting that was changed in a turn that a hook broke stands behind the failure': scenario(thrower, {
    turns: [{ context: ['throw'], beforeRequest: [{ do: 'setThinkingLevel', level: 'high' }] }],
  }),
  'a changed setting stands right behind its turn, in front of what the next one takes from the queues': scenario(
    plain,
    {
      turns: [
        {
          calls: calls({
            inTool: [
              { do: 'steer', text: 'now' },
              { do: 'setModel', model: 'play/other' },
            ],
          }),
        },
      ],
    },
  ),
  'a gate looks at the tools of its own request, whatever was set since': scenario(gated, {
    before: [{ do: 'setActiveTools', tools: ['echo'] }],
    turns: [
      { calls: calls({ tool: 'alias' }, {}), inStream: [{ do: 'setActiveTools', tools: ['alias'] }] },
      { calls: calls({ tool: 'alias' }, {}) },
    ],
  }),
  'a policy that replaces the context of an aborted run does not cost it its last turn': scenario(both, {
    turns: [{ calls: calls({ inTool: [{ do: 'abort' }] }), policy: { stop: false, keep: 1, prompt: true } }],
  }),
};

test.each(Object.entries(found))('%s', async (_, script) => {
  const { comparison } = await playBoth(stage(), script);
  expect(comparison.difference).toBe('');
});

import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

// https://github.com/earendil-works/pi/issues/9986: after an abort in a sequential batch the calls that had not started
// had no results, and providers refused the next request.

const entered = new Entered();
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: loopTools(harness, entered), toolExecution: 'sequential' }),
    testAgent('gated', {
      tools: loopTools(harness, entered),
      toolExecution: 'sequential',
      beforeToolCall: () => undefined,
    }),
  ],
});

test.each(['plain', 'gated'])(
  'an abort while the first of three sequential calls runs gives each of them a result (%s)',
  async (agent) => {
    const calls = ['a', 'b', 'c'].map((id) => ({ id, name: 'say', args: id === 'a' ? { at: 'a' } : {} }));
    const talk = harness.talk(agent, [{ calls }, { text: 'unused' }, { text: 'Fine' }]);
    talk.accepted.push('Go', 'On');
    const { runId } = await talk.session.prompt('Go');
    await talk.reached('a');
    await talk.session.abort();
    const aborted = 'result of say (error): Operation aborted';
    expect((await talk.events(runId)).slice(4).filter((word) => word !== 'queue []')).toEqual([
      ...[
        'start a',
        'end a: aborted',
        aborted,
        'start b',
        'end b: aborted',
        aborted,
        'start c',
        'end c: aborted',
        aborted,
        'turn_end a b c',
      ],
      ...['turn_start', 'assistant: ', 'turn_end', 'agent_end: aborted', 'settled', 'abort queue []'],
    ]);
    expect(entered.of(talk.sessionId)).toEqual(['enter a']);
    expect(await talk.session.run('On')).toMatchObject({ text: 'Fine' });
    expect(talk.asked.at(-1)).toEqual([
      'user: Go',
      'assistant:  +say +say +say',
      aborted,
      aborted,
      aborted,
      'assistant: ',
      'user: On',
    ]);
  },
);

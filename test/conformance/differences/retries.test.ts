import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../../support/harness.ts';
import { harness, scenario } from '../build.ts';
import { playOnPi } from '../compare.ts';
import { hookWords, transcriptWords } from './both-sides.ts';

let calls = 0;
/** Throws at the first calls, so many as it is told to. */
const failing = (times: number) => {
  const agent = testAgent(`failing-${times}`);
  agent.on('context', () => {
    calls += 1;
    if (calls <= times) throw new Error('away for a moment');
    return undefined;
  });
  return agent;
};
const everturn: Harness = useHarness({ agents: () => [failing(2), failing(3)] });

test('difference 16: a hook is tried three times before its error counts, and pi calls it once', async () => {
  const script = scenario(harness({ context: 1 }), { turns: [{ context: ['throw'] }] });
  const pi = await playOnPi(script, { bare: true });
  expect(hookWords(pi)).toEqual(['context']);
  expect(transcriptWords(pi).at(-1)).toContain('assistant error');

  const passing = everturn.talk('failing-2', [{ text: 'Fine' }]);
  expect(await passing.session.run('Go')).toMatchObject({ status: 'done', text: 'Fine' });
  expect(calls).toBe(3);

  calls = 0;
  const broken = everturn.talk('failing-3', [{ text: 'never' }]);
  await expect(broken.session.run('Go')).rejects.toMatchObject({ code: 'hook' });
  expect(calls).toBe(3);
  expect(broken.requests).toEqual([]);
});

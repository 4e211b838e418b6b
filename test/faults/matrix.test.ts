import { beforeAll, describe, expect, test } from '@jest/globals';
import { allCases, type Blow, choose } from './cases.ts';
import { checkSame } from './check.ts';
import { runUndisturbed, tallyOf, type Undisturbed } from './matrix.ts';
import { scenarios } from './scenarios.ts';
import { playWave } from './wave.ts';

// A part of the fault matrix that the suite has time for, the same at each run. All of it: `npm run faults`.

const ground = {
  address: process.env.EVERTURN_TEST_TEMPORAL ?? '',
  bundle: process.env.EVERTURN_TEST_BUNDLE ?? '',
};
let undisturbed: Undisturbed;

beforeAll(async () => {
  undisturbed = await runUndisturbed(ground);
}, 120_000);

const log = (scenario: string) => undisturbed.logs.get(scenario) ?? [];

const both = (what: string) => [`^before ${what}`, `^after ${what}`];
const activities = [
  ...['openSession', 'beforeAgentStart', 'loadContext', 'streamAssistantResponse', 'saveContext', 'beforeToolCall'],
  ...['executeTool', 'pollQueueHook', 'append'],
];

test.each([
  ...activities.flatMap((name) => both(`activity \\d+ ${name}$`)),
  ...['openSession$', 'beginEffect of ', 'saveStep of ', 'commit of '].flatMap(both),
  ...['the first task$', 'the task of '].flatMap(both),
  ...['beforeToolCall', 'afterToolCall', 'transformContext', 'before_agent_start', 'getFollowUpMessages'].map(
    (hook) => `^inside ${hook}`,
  ),
  ...['request 1, before', 'request 1, between', 'request 1, after', 'call-0-1, before', 'call-0-1, after'].map(
    (place) => `^inside ${place}`,
  ),
])('there are kill points %s', (pattern) => {
  expect([...undisturbed.points.values()].flat()).toContainEqual(expect.stringMatching(pattern));
});

describe.each<{ blow: Blow; cases: number; so: string }>([
  { blow: 'kill', cases: 24, so: 'lose nothing and do nothing twice, wherever they stand' },
  { blow: 'freeze', cases: 8, so: 'are taken over, and what the sleeper writes later changes nothing' },
  { blow: 'full', cases: 8, so: 'go on when there is room again' },
])('sessions under the blow $blow', ({ blow, cases, so }) => {
  test(so, async () => {
    const all = allCases(undisturbed.points).filter((each) => each.blow === blow);
    const chosen = choose(all, { seed: 7, cases });
    const results = await playWave(chosen, { ground, undisturbed: undisturbed.logs });
    expect(results.filter(({ problems }) => problems.length > 0)).toEqual([]);
    expect(tallyOf(results)).toEqual({ cases, passed: cases, lost: 0, twice: 0, hung: 0 });
  }, 240_000);
});

describe('the comparison with the undisturbed run', () => {
  test.each(scenarios)('finds no difference between $name and itself', ({ name }) => {
    expect(checkSame(log(name), log(name))).toEqual([]);
  });

  test('finds a record that is lost, one that is there twice, and one that reads otherwise', () => {
    const [first, ...rest] = log('never');
    const last = rest.at(-1);
    expect(checkSame(rest, log('never'))).toMatchObject([{ kind: 'lost' }]);
    expect(checkSame([...log('never'), last!], log('never'))).toMatchObject([{ kind: 'twice' }]);
    expect(checkSame([first!, ...rest.slice(0, -1), { ...last!, key: 'other' }], log('never'))).toMatchObject([
      { kind: 'other', text: expect.stringContaining('other') },
    ]);
  });
});

import { expect, test } from '@jest/globals';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';

// https://github.com/earendil-works/pi/issues/8935: the hook of the second call aborted the run, and the first call was
// executed all the same.

const entered = new Entered();
const after: string[] = [];
let talk: Talk;
let abort: (talk: Talk) => Promise<unknown>;
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', {
      tools: loopTools(harness, entered),
      async beforeToolCall({ toolCall }, signal) {
        if (toolCall.id !== 'b') return undefined;
        await abort(talk);
        await new Promise<void>((resolve) =>
          signal?.aborted ? resolve() : signal?.addEventListener('abort', () => resolve()),
        );
        return undefined;
      },
      afterToolCall: ({ toolCall }) => void after.push(toolCall.id),
    }),
  ],
});

test.each([
  { by: 'its signal', how: (run: Talk) => run.session.sendAbort('r1') },
  { by: 'its control record', how: (run: Talk) => harness.store.requestAbort(run.sessionId, 'r1') },
  { by: 'a signal by hand', how: (run: Talk) => run.workflow.signal('abort') },
])(
  'the gate of the second of two calls aborts the run by $by: neither is executed, both have start, end and result',
  async ({ how }) => {
    talk = harness.talk('plain', [
      {
        calls: [
          { id: 'a', name: 'say' },
          { id: 'b', name: 'say' },
        ],
      },
      { text: 'unused' },
      { text: 'Fine' },
    ]);
    abort = how;
    talk.accepted.push('Go', 'On');
    expect(await talk.session.run('Go', { runId: 'r1' })).toMatchObject({ status: 'aborted' });
    const events = await talk.events('r1');
    for (const id of ['a', 'b']) {
      expect(events.filter((word) => word === `start ${id}` || word.startsWith(`end ${id}:`))).toEqual([
        `start ${id}`,
        `end ${id}: aborted`,
      ]);
    }
    const aborted = 'result of say (error): Operation aborted';
    expect(events.filter((word) => word.startsWith('result'))).toEqual([aborted, aborted]);
    expect(entered.of(talk.sessionId)).toEqual([]);
    expect(after).toEqual([]);
    await talk.session.run('On');
    expect(talk.asked.at(-1)).toEqual([
      'user: Go',
      'assistant:  +say +say',
      aborted,
      aborted,
      ...talk.asked.at(-1)!.slice(4, -1),
      'user: On',
    ]);
  },
);

import { expect, test } from '@jest/globals';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';

// https://github.com/jsmestad/minga/pull/675: a steer that came after the last token left the session idle with one
// message queued.

const harness: Harness = useHarness({ agents: () => [testAgent('plain')] });

test('a steer at any instant around the end of a run is answered: never idle with one queued', async () => {
  const rounds = 12;
  const talk = harness.talk('plain', (request) => ({ text: `reply ${request.reply}`, chunks: 1 }));
  talk.accepted.push(...Array.from({ length: rounds }, (_, round) => [`p${round}`, `s${round}`]).flat());
  for (let round = 0; round < rounds; round++) {
    const { runId } = await talk.session.prompt(`p${round}`, { runId: `r${round}` });
    // The later the round the later the steer, from the middle of the stream to after the end.
    while ((await harness.store.readRun(talk.sessionId, runId)) === undefined);
    for (let turn = 0; turn < round; turn++) await harness.store.readRun(talk.sessionId, runId);
    await talk.session.steer(`s${round}`);
    await talk.logged(
      (event) => event.type === 'message_end' && JSON.stringify(event.message.content).includes(`"s${round}"`),
      `s${round}`,
    );
    await talk.session.waitForIdle();
  }
  expect(await talk.session.queues()).toMatchObject({ steer: [] });
  const last = talk.asked.at(-1) ?? [];
  expect(last.at(-1)).toBe(`user: s${rounds - 1}`);
});

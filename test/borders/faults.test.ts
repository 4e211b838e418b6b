import { createHash } from 'node:crypto';
import { afterEach, expect, test } from '@jest/globals';
import { z } from 'zod';
import { defineTool } from '../../src/agent/tool.ts';
import { EverturnError } from '../../src/common/errors.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import { type Harness, testAgent, useHarness } from '../support/harness.ts';
import { Entered, loopTools } from '../support/loop-tools.ts';
import { waitFor } from '../support/wait-for.ts';

const entered = new Entered();

/** What the disk does: every write that fits fails as on a full disk, until it is cleaned up. */
let isFull: (what: string) => boolean = () => false;
let refused = 0;

function onFullDisk(store: Store): Store {
  const guard = (what: string) => {
    if (!isFull(what)) return;
    refused += 1;
    throw new EverturnError('store_full', 'The disk is full. Make room, the session goes on by itself.', {
      retryable: true,
    });
  };
  return {
    ...store,
    async commit(fence, commit) {
      guard(commit.closeRun === undefined ? fence.effect : 'end');
      return store.commit(fence, commit);
    },
    async beginEffect(fence, first) {
      if (first?.claim !== undefined) guard('claim');
      return store.beginEffect(fence, first);
    },
    async openSession(request) {
      guard('open');
      return store.openSession(request);
    },
    async appendDeltas(deltas) {
      guard('deltas');
      return store.appendDeltas(deltas);
    },
  };
}

let blockedMs = 0;
const blocking = defineTool({
  name: 'block',
  description: 'blocks the event loop',
  parameters: z.object({}),
  heartbeatTimeoutMs: 1_000,
  execute: (_args, context) => {
    entered.note(context, 'enter');
    const until = Date.now() + blockedMs;
    while (Date.now() < until);
    return 'done at last';
  },
});

const notices: string[] = [];
const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain', { tools: [...loopTools(harness, entered), blocking] }),
    testAgent('brief', { lingerMs: 1 }),
  ],
  wrapStore: onFullDisk,
  worker: { onNotice: (text) => notices.push(text) },
});

afterEach(() => {
  isFull = () => false;
  refused = 0;
});

const script = [{ calls: [{ name: 'say' }, { name: 'say' }] }, { text: 'Done' }];

test.each(['open', 'r1/t0/model', 'claim', 'r1/0/0/tool', 'r1/t1/model', 'end'])(
  'a disk that is full at %s holds the run up, and nothing is lost or done twice once there is room',
  async (what) => {
    const talk = harness.talk('plain', script);
    talk.accepted.push('Go');
    isFull = (place) => place === what;
    const prompting = talk.session.prompt('Go', { runId: 'r1' });
    await waitFor(() => refused > 1, { what: 'refused writes' });
    isFull = () => false;
    await prompting;
    expect(await talk.session.result('r1')).toMatchObject({ status: 'done', text: 'Done' });
    const events = await talk.events('r1');
    expect(events.filter((word) => !/^(start|end) call/.test(word))).toEqual([
      ...[
        'agent_start',
        'turn_start',
        'user: Go',
        'assistant:  +say +say',
        'result of say: ok',
        'result of say: ok',
        'turn_end call-0-0 call-0-1',
      ],
      ...['turn_start', 'assistant: Done', 'turn_end', 'agent_end: done', 'settled'],
    ]);
    // A never tool whose result could not be written is not entered again: its outcome is told as it was.
    expect(
      entered
        .of(talk.sessionId)
        .filter((note) => note.startsWith('enter'))
        .toSorted(),
    ).toEqual(['enter call-0-0', 'enter call-0-1']);
  },
);

test('a disk that is full for live deltas alone does not hold the run up', async () => {
  const talk = harness.talk('plain', [{ text: 'Hello' }]);
  isFull = (place) => place === 'deltas';
  notices.length = 0;
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', text: 'Hello' });
  expect(notices.join()).toMatch(/live deltas were lost.*disk is full/);
});

test('messages that come while the end of a run cannot be written go to the next run', async () => {
  const talk = harness.talk('plain', [{ text: 'A' }, { text: 'B' }]);
  talk.accepted.push('Go', 'late', 'two');
  isFull = (place) => place === 'end';
  await talk.session.prompt('Go', { runId: 'r1' });
  await waitFor(() => refused > 0, { what: 'the end of the run' });
  await talk.session.steer('late');
  const second = talk.session.prompt('two', { runId: 'r2', onBusy: 'followUp' });
  await waitFor(() => refused > 2, { what: 'more refused writes' });
  isFull = () => false;
  expect(await second).toEqual({ became: 'opened', runId: 'r2' });
  await talk.session.result('r2');
  expect(await talk.transcript()).toEqual(['user: Go', 'assistant: A', 'user: two', 'user: late', 'assistant: B']);
  expect(await talk.session.result('r1')).toMatchObject({ status: 'done', text: 'A' });
});

test('a store that really has no room says store_full, and works again when there is room', async () => {
  const small = await openStore({ path: `${harness.folder}/small`, maxPages: 60 });
  const defaults = { agent: 'a', model: 'm/m', thinkingLevel: 'off' as const, activeTools: null };
  await small.openSession({ sessionId: 's', workflowRunId: 'w', defaults });
  const write = (text: string) => small.putBlob(createHash('sha256').update(text).digest('hex'), Buffer.from(text));
  await expect(write('x'.repeat(1_000_000))).rejects.toMatchObject({
    code: 'store_full',
    retryable: true,
    message: expect.stringMatching(/room|space|full/i),
  });
  await write('small');
  expect(await small.verify('s')).toMatchObject({ ok: true });
  await small.close();
});

test('a tool that blocks the event loop past its heartbeat timeout is entered once, and its call has one honest result', async () => {
  const talk = harness.talk('plain', [{ calls: [{ name: 'block' }] }, { text: 'Done' }]);
  talk.accepted.push('Go');
  blockedMs = 2_500;
  expect(await talk.session.run('Go')).toMatchObject({ status: 'done', text: 'Done' });
  expect(entered.of(talk.sessionId)).toEqual(['enter call-0-0']);
  expect(talk.asked.at(-1)?.[2]).toMatch(/^result of block(: done at last| \(error\): Interrupted, outcome unknown)/);
});

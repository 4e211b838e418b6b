import { afterEach, expect, test } from '@jest/globals';
import { type CrashStage, startCrashStage } from '../support/crash-stage.ts';
import { holdCommitFile } from '../support/worker-process.ts';

let stage: CrashStage;

afterEach(() => stage?.end());

const oneTurn = ['agent_start', 'turn_start', 'user', 'assistant', 'turn_end', 'agent_end: done', 'settled'];

test.each([
  { when: 'before the first token', at: 0, streamed: '' },
  { when: 'while streaming', at: 2, streamed: 'Hello ' },
  { when: 'after the last token', at: 'all' as const, streamed: 'Hello world' },
])('a worker killed $when costs one more request with the same content', async ({ at, streamed }) => {
  stage = await startCrashStage({
    replies: [{ text: 'Hello world', chunks: 4, holdUntilFile: 'go', holdAfterChunks: at }],
    hooks: ['transform'],
  });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Hi');
  await stage.reached('go.waiting');
  await first.kill9();
  stage.evidence.put('go');
  const second = await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Hello world' });
  expect(await stage.log(runId)).toEqual(oneTurn);
  expect(stage.requests().map((request) => request.pid)).toEqual([first.pid, second.pid]);
  // The transform was asked once: what it gave is kept, and the retry sends the same.
  expect(stage.asked(0)).toEqual(['user: Hi', 'user: transformed 1']);
  expect(stage.requests()[1]?.messages).toEqual(stage.requests()[0]?.messages);
  const deltas = await stage.store.readDeltas(stage.sessionId, 0, 1_000);
  const text = (attempt: number) =>
    deltas.map((each) => (each.attempt === attempt && each.delta.type === 'text_delta' ? each.delta.delta : '')).join('');
  expect([text(1), text(2)]).toEqual([streamed, 'Hello world']);
  await stage.check(['Hi']);
});

test('a worker killed between the last token and the commit costs one more request', async () => {
  stage = await startCrashStage({ replies: [{ text: 'Hello' }] });
  const first = await stage.startWorker();
  const hold = holdCommitFile('before', 'r1/t0/model');
  stage.evidence.put(hold);
  const { runId } = await stage.session.prompt('Hi', { runId: 'r1' });
  await stage.reached(`${hold}.waiting`);
  await first.kill9();
  stage.evidence.remove(hold);
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Hello' });
  expect(await stage.log(runId)).toEqual(oneTurn);
  expect(stage.requests()).toHaveLength(2);
  await stage.check(['Hi']);
});

test('a worker killed between the commit and its report costs no request', async () => {
  stage = await startCrashStage({ replies: [{ text: 'Hello' }] });
  const first = await stage.startWorker();
  const hold = holdCommitFile('after', 'r1/t0/model');
  stage.evidence.put(hold);
  const { runId } = await stage.session.prompt('Hi', { runId: 'r1' });
  await stage.reached(`${hold}.waiting`);
  await first.kill9();
  stage.evidence.remove(hold);
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Hello' });
  expect(await stage.log(runId)).toEqual(oneTurn);
  expect(stage.requests()).toHaveLength(1);
  await stage.check(['Hi']);
});

test('messages sent while no worker lives reach the next request once, in order', async () => {
  stage = await startCrashStage({
    replies: [{ text: 'Hello', holdUntilFile: 'go' }, { text: 'first' }, { text: 'second' }],
  });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Hi');
  await stage.reached('go.waiting');
  await first.kill9();
  await stage.session.steer('steer 1');
  await stage.session.steer('steer 2');
  stage.evidence.put('go');
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'second' });
  expect(await stage.transcript()).toEqual([
    ...['user: Hi', 'assistant: Hello', 'user: steer 1', 'assistant: first', 'user: steer 2', 'assistant: second'],
  ]);
  expect(stage.asked(2)).toEqual(['user: Hi', 'assistant: Hello', 'user: steer 1']);
  await stage.check(['Hi', 'steer 1', 'steer 2']);
});

test('a worker that sleeps while another takes over cannot write its own reply', async () => {
  stage = await startCrashStage({ replies: [{ text: 'Hello world', chunks: 2, holdUntilFile: 'go', holdAfterChunks: 1 }] });
  const sleeper = await stage.startWorker();
  const { runId } = await stage.session.prompt('Hi');
  await stage.reached('go.waiting');
  sleeper.pause();
  stage.evidence.put('go');
  await stage.startWorker();
  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Hello world' });
  const before = await stage.log();
  sleeper.resume();
  await sleeper.stop();

  expect(await stage.log()).toEqual(before);
  await stage.check(['Hi']);
});

test('a failure that passes is retried after a crash as before', async () => {
  stage = await startCrashStage({ replies: [{ text: 'Hello', error: '429 rate limit', failTimes: 2 }] });
  const hold = holdCommitFile('before', 'r1/t0/model');
  stage.evidence.put(hold);
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Hi', { runId: 'r1' });
  await stage.reached(`${hold}.waiting`);
  await first.kill9();
  stage.evidence.remove(hold);
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Hello' });
  expect(await stage.log(runId)).toEqual(oneTurn);
  expect(stage.requests()).toHaveLength(4);
  await stage.check(['Hi']);
});

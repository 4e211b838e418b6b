import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type CrashSession, CrashStage } from '../support/crash-stage.ts';
import { effectsLog, releaseFile } from '../support/crash-tools.ts';
import { waitFor } from '../support/wait-for.ts';
import { holdCommitFile, holdRetriesFile, type WorkerProcess } from '../support/worker-process.ts';

let stage: CrashStage;
let worker: WorkerProcess;

beforeAll(async () => {
  stage = await CrashStage.open();
  worker = await stage.startWorker();
});

afterAll(() => stage?.end());

/** Another worker in the place of the one that is killed. */
async function crash(meanwhile: () => Promise<void> | void = () => {}): Promise<void> {
  await worker.kill9();
  await meanwhile();
  worker = await stage.startWorker();
}

// Temporal counts the tool as running for a while after its worker is gone: cancelled then, it times out.
test.each(['while the lost tool counts as running', 'while it waits to be retried'])(
  'an abort after a crash, %s, ends the batch, and the finished calls keep their results',
  async (when) => {
    const calls = [{ name: 'effect_never' }, { name: 'effect_never' }, { name: 'effect_safe', args: { hold: true } }];
    const session = stage.session(`abort ${when}`, 'plain', [{ calls }, {}, { text: 'Again' }]);
    await session.prompt();
    await session.reached('call-0-2.holding');
    await session.settled('r1/0', 2);
    await crash(async () => {
      if (when.includes('retried')) await session.retried();
      await session.session.sendAbort('r1');
    });

    expect(await session.ended('r1')).toMatch(/^aborted: /);
    expect((await session.transcript()).slice(2)).toEqual([
      'result of effect_never: effect_never done',
      'result of effect_never: effect_never done',
      expect.stringMatching(/^result of effect_safe \(error\): Operation aborted/),
      // As in pi, an abort in the tools gives one more turn, whose request is never sent.
      'assistant: ',
    ]);
    await session.prompt('And now?');
    expect(await session.ended('r2')).toBe('done: Again');
    await session.check();
  },
);

test('a permanent failure of the provider after a tool does not run the tool again', async () => {
  const session = stage.session('permanent', 'plain', [
    { calls: [{ name: 'effect_never' }] },
    { error: '400 invalid_request: no' },
    { text: 'Better' },
  ]);
  await session.prompt();
  expect(await session.ended('r1')).toBe('error: (model_failed: 400 invalid_request: no)');
  await crash();
  await session.prompt('And now?');

  expect(await session.ended('r2')).toBe('done: Better');
  expect(session.noted(effectsLog)).toEqual(['entered', 'done']);
  await session.check();
});

test('a message that comes after a run has ended, and before its workflow knows, opens the next run', async () => {
  const session = stage.session('end', 'plain', [{ text: 'One' }, { text: 'Two' }]);
  const hold = holdCommitFile('after', 'r1/end');
  session.evidence.put(hold);
  await session.prompt();
  await session.reached(`${hold}.waiting`);
  expect(await session.ended('r1')).toBe('done: One');
  await crash(async () => {
    session.evidence.remove(hold);
    await session.steer('And now?');
  });

  await waitFor(async () => (await session.transcript()).includes('assistant: Two'), { what: 'the answer' });
  await waitFor(async () => (await session.session.status()).phase === 'idle', { what: 'the end' });
  expect(session.asked(1)).toEqual(['user: PROMPT', 'assistant: One', 'user: And now?']);
  await session.check();
});

test('a session whose workflow was terminated in a tool is closed honestly by the next prompt', async () => {
  const calls = [{ name: 'effect_never', args: { hold: true } }, { name: 'effect_safe' }];
  const session = stage.session('terminated', 'plain', [{ calls }, { text: 'Done' }]);
  await session.prompt();
  await session.reached('call-0-0.holding');
  await session.settled('r1/0', 1);
  await crash(async () => void (await session.workflow.terminate()));
  await expect(session.session.result('r1')).rejects.toMatchObject({ code: 'session_closed' });
  await session.prompt('And now?');

  expect(await session.ended('r2')).toBe('done: Done');
  expect(await session.ended('r1')).toMatch(/^interrupted: /);
  expect(session.asked(1)).toEqual([
    ...['user: PROMPT', 'assistant:  +effect_never +effect_safe'],
    expect.stringMatching(/^result of effect_never \(error\): Interrupted, outcome unknown/),
    ...['result of effect_safe: effect_safe done', 'user: And now?'],
  ]);
  expect(session.noted(effectsLog).filter((what) => what === 'entered')).toHaveLength(2);
  await session.check();
});

test('a never tool that blocks its worker for longer than its heartbeat is entered once', async () => {
  const session = stage.session('block', 'plain', [
    { calls: [{ name: 'block_never', args: { ms: 4_000 } }] },
    { text: 'Done' },
  ]);
  const second = await stage.startWorker();
  await session.prompt();

  expect(await session.ended('r1')).toBe('done: Done');
  expect(session.noted(effectsLog).filter((what) => what === 'entered')).toHaveLength(1);
  await session.check();
  await second.stop();
});

test('a safe tool that is stopped since its worker counts as lost is entered again', async () => {
  const args = { ms: 4_000, untilStopped: true };
  const session = stage.session('lost', 'plain', [{ calls: [{ name: 'block_safe', args }] }, { text: 'Done' }]);
  session.evidence.put(holdRetriesFile);
  await session.prompt();
  await waitFor(() => session.noted(effectsLog).includes('stopped'), { what: 'the end of the first entry' });
  session.evidence.remove(holdRetriesFile);

  expect(await session.ended('r1')).toBe('done: Done');
  expect((await session.transcript())[2]).toBe('result of block_safe: block_safe done');
  await session.check();
});

describe('a worker that is stopped in good order', () => {
  let streaming: CrashSession;
  let safe: CrashSession;
  let never: CrashSession;

  beforeAll(async () => {
    const call = (name: string) => [{ calls: [{ name, args: { hold: true } }] }, { text: 'Done' }];
    streaming = stage.session('stop-model', 'plain', [{ text: 'Done', holdUntilFile: 'go', holdAfterChunks: 1 }]);
    safe = stage.session('stop-safe', 'plain', call('effect_safe'));
    never = stage.session('stop-never', 'plain', call('effect_never'));
    await Promise.all([streaming.prompt(), safe.prompt(), never.prompt()]);
    await streaming.reached('go.waiting');
    await Promise.all([safe.reached('call-0-0.holding'), never.reached('call-0-0.holding')]);
    await worker.stop();
    streaming.evidence.put('go');
    safe.evidence.put(releaseFile);
    worker = await stage.startWorker();
  });

  test('leaves a stream to the next worker', async () => {
    expect(await streaming.ended('r1')).toBe('done: Done');
    expect(streaming.requests()).toHaveLength(2);
    await streaming.check();
  });

  test('leaves a safe tool to the next worker', async () => {
    expect(await safe.ended('r1')).toBe('done: Done');
    expect(safe.noted(effectsLog)).toEqual(['entered', 'entered', 'done']);
    await safe.check();
  });

  test('ends a never tool, which is not entered again', async () => {
    expect(await never.ended('r1')).toBe('done: Done');
    expect(never.noted(effectsLog)).toEqual(['entered']);
    expect((await never.log('r1')).filter((word) => word.startsWith('end'))).toEqual(['end effect_never: unknown']);
    await never.check();
  });
});

describe('workflow reset', () => {
  test('to before a reply and a never tool that were done asks for neither again', async () => {
    const session = stage.session('reset', 'plain', [
      { calls: [{ name: 'effect_never' }] },
      { text: 'Done' },
      { text: 'Again' },
    ]);
    await session.prompt();
    await session.session.result('r1');
    const before = await session.log('r1');
    await session.reset('first');
    await session.prompt('And now?');

    expect(await session.ended('r2')).toBe('done: Again');
    expect(await session.log('r1')).toEqual(before);
    expect(session.noted(effectsLog)).toEqual(['entered', 'done']);
    expect(session.requests()).toHaveLength(3);
    await session.check();
  });

  test('while a reply is streamed gives readers the new stream alone', async () => {
    const session = stage.session('reset-stream', 'plain', [
      { text: 'Hello world', chunks: 2, holdUntilFile: 'go', holdAfterChunks: 1 },
    ]);
    await session.prompt();
    await waitFor(async () => (await session.streamed('r1/0', 1)) === 'Hello ', { what: 'the first half' });
    await session.reset('last');
    await waitFor(() => session.requests().length === 2, { what: 'the second request' });
    session.evidence.put('go');

    expect(await session.ended('r1')).toBe('done: Hello world');
    expect(await session.streamed('r1/0', 2)).toBe('Hello world');
    await session.check();
  });

  test('in a never tool, to its last task, goes on with the run and does not enter the tool again', async () => {
    const session = stage.session('reset-last', 'plain', [
      { calls: [{ name: 'effect_never', args: { hold: true } }] },
      { text: 'Done' },
    ]);
    await session.prompt();
    await session.reached('call-0-0.holding');
    await session.reset('last');
    expect(await session.ended('r1')).toBe('done: Done');
    session.evidence.put(releaseFile);

    expect(session.noted(effectsLog).filter((what) => what === 'entered')).toHaveLength(1);
    expect(session.asked(1)[2]).toMatch(/^result of effect_never \(error\): Interrupted, outcome unknown/);
    await session.check();
  });

  test('in a never tool, to its first task, ends the run as interrupted', async () => {
    const session = stage.session('reset-first', 'plain', [
      { calls: [{ name: 'effect_never', args: { hold: true } }] },
      { text: 'Again' },
    ]);
    await session.prompt();
    await session.reached('call-0-0.holding');
    await session.reset('first');
    expect(await session.ended('r1')).toMatch(/^interrupted: /);
    session.evidence.put(releaseFile);
    await session.prompt('And now?');

    expect(await session.ended('r2')).toBe('done: Again');
    expect(session.noted(effectsLog).filter((what) => what === 'entered')).toHaveLength(1);
    await session.check();
  });
});

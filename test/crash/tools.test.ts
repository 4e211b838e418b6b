import { afterEach, expect, test } from '@jest/globals';
import { type CrashStage, startCrashStage } from '../support/crash-stage.ts';
import { afterEffectFile, effectsLog, releaseFile } from '../support/crash-tools.ts';
import { holdCommitFile } from '../support/worker-process.ts';

let stage: CrashStage;

afterEach(() => stage?.end());

function twoTurns(tool: string, outcome: string): string[] {
  return [
    ...['agent_start', 'turn_start', 'user', 'assistant', `start ${tool}`, `end ${tool}: ${outcome}`, 'toolResult', 'turn_end'],
    ...['turn_start', 'assistant', 'turn_end', 'agent_end: done', 'settled'],
  ];
}

/** What the tools of the stage did: "entered" and "done" in order. */
function done(): unknown[] {
  return stage.evidence.read(effectsLog).map((line) => line.what);
}

function keys(): Set<unknown> {
  return new Set(stage.evidence.read(effectsLog).map((line) => line.idempotencyKey));
}

const kinds = [
  { tool: 'effect_never', outcome: 'unknown', inTool: ['entered'], afterEffect: ['entered', 'done'] },
  ...['effect_safe', 'effect_keyed'].map((tool) => ({
    tool,
    outcome: 'completed',
    inTool: ['entered', 'entered', 'done'],
    afterEffect: ['entered', 'done', 'entered', 'done'],
  })),
];

function told(tool: string, outcome: string, note = ''): string {
  if (outcome === 'completed') return `result of ${tool}: ${tool} done`;
  return `result of ${tool} (error): Interrupted, outcome unknown: the worker was lost after ${tool} had started. It may or may not have taken effect.${note} Check before you do it again.`;
}

test.each(kinds)('a worker killed in $tool', async ({ tool, outcome, inTool }) => {
  const args = { hold: true, progress: 'half' };
  stage = await startCrashStage({ replies: [{ text: 'Well', calls: [{ name: tool, args }] }, { text: 'Done' }] });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it');
  await stage.reached('call-0-0.holding');
  await first.kill9();
  stage.evidence.put(releaseFile);
  const second = await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done', text: 'Done' });
  expect(await stage.log(runId)).toEqual(twoTurns(tool, outcome));
  expect(done()).toEqual(inTool);
  expect(keys().size).toBe(1);
  expect(stage.requests().map((request) => request.pid)).toEqual([first.pid, second.pid]);
  expect(stage.asked(1)).toEqual(['user: Do it', `assistant: Well +${tool}`, told(tool, outcome, ' It last reported: "half".')]);
  await stage.check(['Do it']);
});

test.each(kinds)('a worker killed right after the effect of $tool', async ({ tool, outcome, afterEffect }) => {
  const args = { stopAfterEffect: true };
  stage = await startCrashStage({ replies: [{ calls: [{ name: tool, args }] }, { text: 'Done' }] });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it');
  await stage.reached(afterEffectFile);
  await first.kill9();
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done' });
  expect(await stage.log(runId)).toEqual(twoTurns(tool, outcome));
  expect(done()).toEqual(afterEffect);
  expect(keys().size).toBe(1);
  expect(stage.asked(1)).toEqual(['user: Do it', `assistant:  +${tool}`, told(tool, outcome)]);
  await stage.check(['Do it']);
});

test.each([
  { place: 'before' as const, outcome: 'unknown' },
  { place: 'after' as const, outcome: 'completed' },
])('a worker killed $place the commit of a never tool leaves the outcome $outcome', async ({ place, outcome }) => {
  stage = await startCrashStage({ replies: [{ calls: [{ name: 'effect_never' }] }, { text: 'Done' }] });
  const hold = holdCommitFile(place, 'r1/0/0/tool');
  stage.evidence.put(hold);
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it', { runId: 'r1' });
  await stage.reached(`${hold}.waiting`);
  await first.kill9();
  stage.evidence.remove(hold);
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done' });
  expect(await stage.log(runId)).toEqual(twoTurns('effect_never', outcome));
  expect(done()).toEqual(['entered', 'done']);
  expect(stage.asked(1)[2]).toEqual(told('effect_never', outcome));
  await stage.check(['Do it']);
});

test.each([
  { args: { stopAfterEffect: true }, after: 'the effect', outcome: 'completed', text: 'result of effect_reconciled: effect_reconciled was done before the crash' },
  { args: { hold: true }, after: 'the entry', outcome: 'unknown', text: told('effect_reconciled', 'unknown') },
])('reconcile finds out whether a never tool took effect: killed after $after it is $outcome', async ({ args, outcome, text }) => {
  stage = await startCrashStage({ replies: [{ calls: [{ name: 'effect_reconciled', args }] }, { text: 'Done' }] });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it');
  await stage.reached('hold' in args ? 'call-0-0.holding' : afterEffectFile);
  await first.kill9();
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done' });
  expect(await stage.log(runId)).toEqual(twoTurns('effect_reconciled', outcome));
  expect(done().filter((what) => what === 'entered')).toHaveLength(1);
  expect(stage.asked(1)[2]).toBe(text);
  await stage.check(['Do it']);
});

test('calls that were done before the crash keep their results, in source order', async () => {
  stage = await startCrashStage({
    replies: [
      { calls: [{ name: 'effect_never', args: { hold: true } }, { name: 'effect_never' }, { name: 'effect_safe' }] },
      { text: 'Done' },
    ],
  });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it', { runId: 'r1' });
  await stage.reached('call-0-0.holding');
  await stage.settled('r1/0', 2);
  await first.kill9();
  await stage.startWorker();

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done' });
  expect(stage.asked(1).slice(2)).toEqual([
    told('effect_never', 'unknown'),
    ...['result of effect_never: effect_never done', 'result of effect_safe: effect_safe done'],
  ]);
  expect(done()).toHaveLength(5);
  await stage.check(['Do it']);
});

test('a batch that hangs after a crash is ended by an abort, and the finished calls keep their results', async () => {
  const calls = [{ name: 'effect_never' }, { name: 'effect_never' }, { name: 'effect_safe', args: { hold: true } }];
  stage = await startCrashStage({ replies: [{ calls }, { text: 'Again' }] });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it', { runId: 'r1' });
  await stage.reached('call-0-2.holding');
  await stage.settled('r1/0', 2);
  await first.kill9();
  const aborted = stage.session.abort(runId);
  await stage.startWorker();
  await aborted;

  expect(await stage.session.result(runId)).toMatchObject({ status: 'aborted' });
  const results = (await stage.transcript()).slice(2, 5);
  expect(results.slice(0, 2)).toEqual([told('effect_never', 'completed'), told('effect_never', 'completed')]);
  expect(results[2]).toMatch(/^result of effect_safe \(error\): Operation aborted/);
  const { runId: next } = await stage.session.prompt('And now?');
  expect(await stage.session.result(next)).toMatchObject({ status: 'done', text: 'Again' });
  await stage.check(['Do it', 'And now?']);
});

test('a worker that sleeps in a never tool while another takes over has its true result kept beside the transcript', async () => {
  stage = await startCrashStage({ replies: [{ calls: [{ name: 'effect_never', args: { hold: true } }] }, { text: 'Done' }] });
  const sleeper = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it', { runId: 'r1' });
  await stage.reached('call-0-0.holding');
  sleeper.pause();
  await stage.startWorker();
  expect(await stage.session.result(runId)).toMatchObject({ status: 'done' });
  const before = await stage.log();
  stage.evidence.put(releaseFile);
  sleeper.resume();
  const late = await stage.lateResult('r1/0', 0);

  expect(late).toMatchObject({ result: { content: [{ type: 'text', text: 'effect_never done' }] } });
  expect(await stage.log()).toEqual(before);
  expect(done()).toEqual(['entered', 'done']);
  await stage.check(['Do it']);
});

test('a tool that blocks its worker for longer than its heartbeat is entered once', async () => {
  stage = await startCrashStage({ replies: [{ calls: [{ name: 'block', args: { ms: 4_000 } }] }, { text: 'Done' }] });
  await Promise.all([stage.startWorker(), stage.startWorker()]);
  const { runId } = await stage.session.prompt('Do it');

  expect(await stage.session.result(runId)).toMatchObject({ status: 'done' });
  expect(done().filter((what) => what === 'entered')).toHaveLength(1);
  await stage.check(['Do it']);
});

test('a permanent failure of the provider after a tool does not run the tool again', async () => {
  stage = await startCrashStage({
    replies: [{ calls: [{ name: 'effect_never' }] }, { error: '400 invalid_request: no' }, { text: 'Better' }],
  });
  const first = await stage.startWorker();
  const { runId } = await stage.session.prompt('Do it');
  expect(await stage.session.result(runId)).toMatchObject({ status: 'error', error: { code: 'model_failed' } });
  await first.kill9();
  await stage.startWorker();
  const { runId: next } = await stage.session.prompt('And now?');

  expect(await stage.session.result(next)).toMatchObject({ status: 'done', text: 'Better' });
  expect(done()).toEqual(['entered', 'done']);
  await stage.check(['Do it', 'And now?']);
});

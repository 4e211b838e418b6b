import { afterEach, expect, test } from '@jest/globals';
import { type CrashStage, startCrashStage } from '../support/crash-stage.ts';
import { effectsLog } from '../support/crash-tools.ts';
import { expectInvariants } from '../support/invariants.ts';
import { readWholeLog } from '../support/transcript.ts';
import { waitFor } from '../support/wait-for.ts';

let stage: CrashStage;

afterEach(() => stage?.end());

const sessions = 8;
const kills = 4;

test('sessions whose workers are killed again and again at any moment keep every invariant', async () => {
  const step = (name: string) => ({ text: 'Next', chunks: 10, chunkDelayMs: 10, calls: [{ name }, { name: 'effect_safe' }] });
  const tools = ['effect_never', 'effect_keyed', 'effect_never', 'effect_safe', 'effect_never', 'effect_keyed'];
  stage = await startCrashStage({ replies: [...tools.map(step), { text: 'Done' }], hooks: ['gate', 'transform'] });
  let worker = await stage.startWorker();
  const handles = Array.from({ length: sessions }, (_, index) => stage.client.session(`${stage.sessionId}-${index}`, { agent: 'crash' }));
  const runs = await Promise.all(
    handles.map(async (handle, index) => ({ handle, ...(await handle.prompt(`Hi ${index}`, { runId: `r${index}` })) })),
  );
  const records = async () => {
    const all = await Promise.all(runs.map(({ handle }) => stage.store.readSession(handle.sessionId)));
    return all.reduce((sum, session) => sum + (session?.length ?? 0), 0);
  };
  for (let kill = 1; kill <= kills; kill++) {
    // Each time the crowd has come some records further, each session to a place of its own.
    const from = await records();
    await waitFor(async () => (await records()) > from + sessions * 4, { what: 'progress', timeoutMs: 60_000 });
    await worker.kill9();
    worker = await stage.startWorker();
  }

  const results = await Promise.all(runs.map(({ handle, runId }) => handle.result(runId)));
  expect(results.map((result) => result.text)).toEqual(runs.map(() => 'Done'));
  for (const [index, { handle }] of runs.entries()) {
    await expectInvariants({ store: stage.store, sessionId: handle.sessionId, requests: stage.requests(), accepted: [`Hi ${index}`] });
    const log = await readWholeLog(stage.store, handle.sessionId);
    const ends = log.filter(({ body }) => body.kind === 'event' && body.event.type === 'tool_execution_end');
    expect(ends).toHaveLength(2 * tools.length);
  }
  const entered = stage.evidence.read(effectsLog).filter((line) => line.what === 'entered' && line.tool === 'effect_never');
  // I3: for each key at most once, whatever died when.
  expect(new Set(entered.map((line) => line.idempotencyKey)).size).toBe(entered.length);
}, 180_000);

import { afterAll, expect, test } from '@jest/globals';
import { CrashStage } from '../support/crash-stage.ts';
import { effectsLog } from '../support/crash-tools.ts';
import { waitFor } from '../support/wait-for.ts';

let stage: CrashStage;

afterAll(() => stage?.end());

const sessions = 8;
const kills = 4;

test('sessions whose workers are killed again and again at any moment keep every invariant', async () => {
  const step = (name: string) => ({
    text: 'Next',
    chunks: 10,
    chunkDelayMs: 10,
    calls: [{ name }, { name: 'effect_safe' }],
  });
  const tools = ['effect_never', 'effect_keyed', 'effect_never', 'effect_safe', 'effect_never', 'effect_keyed'];
  stage = await CrashStage.open();
  let worker = await stage.startWorker();
  const crowd = Array.from({ length: sessions }, (_, index) =>
    stage.session(`${index}`, 'hooked', [...tools.map(step), { text: 'Done' }]),
  );
  await Promise.all(crowd.map((session) => session.prompt()));
  const records = async () => {
    const logs = await Promise.all(crowd.map((session) => session.log()));
    return logs.flat().length;
  };
  for (let kill = 1; kill <= kills; kill++) {
    // Each time the crowd has come some records further, each session to a place of its own.
    const from = await records();
    await waitFor(async () => (await records()) > from + sessions * 4, { what: 'progress', timeoutMs: 60_000 });
    await worker.kill9();
    worker = await stage.startWorker();
  }

  for (const session of crowd) {
    expect(await session.ended('r1')).toBe('done: Done');
    await session.check();
    const words = await session.log('r1');
    expect(words.filter((word) => word.startsWith('end '))).toHaveLength(2 * tools.length);
    // I3: whatever died when, each call of a never tool was entered at most once.
    const lines = session.evidence.read(effectsLog);
    const entered = lines.filter((line) => line.what === 'entered' && line.tool === 'effect_never');
    expect(entered.length).toBeLessThanOrEqual(3);
    expect(new Set(entered.map((line) => line.idempotencyKey)).size).toBe(entered.length);
  }
}, 180_000);

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { type CrashSession, CrashStage } from '../support/crash-stage.ts';
import { effectsLog, releaseFile } from '../support/crash-tools.ts';
import { startTemporalServer } from '../support/temporal-server.ts';

// The Temporal server is killed and started again on its file, while the worker lives.

let folder: string;
let server: Awaited<ReturnType<typeof startTemporalServer>>;
let stage: CrashStage;
let inTool: CrashSession;
let streaming: CrashSession;
let idle: CrashSession;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  const dbFile = join(folder, 'temporal.db');
  server = await startTemporalServer({ dbFile });
  const { address } = server;
  stage = await CrashStage.open(address);
  await stage.startWorker();
  inTool = stage.session('tool', 'plain', [
    { calls: [{ name: 'effect_never', args: { hold: true } }] },
    { text: 'Done' },
  ]);
  streaming = stage.session('model', 'plain', [{ text: 'Done', holdUntilFile: 'go', holdAfterChunks: 1 }]);
  idle = stage.session('idle', 'plain', [{ text: 'One' }, { text: 'Done' }]);
  await Promise.all([inTool.prompt(), streaming.prompt(), idle.prompt()]);
  await Promise.all([inTool.reached('call-0-0.holding'), streaming.reached('go.waiting'), idle.session.result('r1')]);
  await server.kill();
  server = await startTemporalServer({ dbFile, port: Number(address.split(':')[1]) });
  inTool.evidence.put(releaseFile);
  streaming.evidence.put('go');
}, 120_000);

afterAll(async () => {
  await stage?.end();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

test('a tool that ran when the server was killed is entered once, and its result counts', async () => {
  expect(await inTool.ended('r1')).toBe('done: Done');
  expect(inTool.noted(effectsLog)).toEqual(['entered', 'done']);
  expect((await inTool.transcript())[2]).toBe('result of effect_never: effect_never done');
  await inTool.check();
});

test('a reply that was streamed when the server was killed is in the log once', async () => {
  expect(await streaming.ended('r1')).toBe('done: Done');
  expect(await streaming.transcript()).toEqual(['user: PROMPT', 'assistant: Done']);
  await streaming.check();
});

test('a session that idled when the server was killed takes the next prompt', async () => {
  await idle.prompt('And now?');
  expect(await idle.ended('r2')).toBe('done: Done');
  expect(idle.asked(1)).toEqual(['user: PROMPT', 'assistant: One', 'user: And now?']);
  await idle.check();
});

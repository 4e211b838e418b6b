import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { Worker } from '@temporalio/worker';
import { openStore } from '../../src/store/index.ts';
import { payloadConverterPath } from '../../src/temporal/data-converter.ts';
import { toProto } from '../../src/testing/replay/proto.ts';
import { replayHistories, replayHistory } from '../../src/testing/replay.ts';
import { bundleWorkflows } from '../../src/worker/bundle.ts';

interface History {
  events: {
    activityTaskScheduledEventAttributes?: { input: { payloads: Payload[] } };
    markerRecordedEventAttributes?: { details: { result: { payloads: Payload[] } } };
  }[];
}

interface Payload {
  metadata: Record<string, string>;
  data: string;
}

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const workflowsPath = path('../support/workflows.ts');
const otherChoice = path('./other-choice.ts');

function recorded(name: string): History {
  return JSON.parse(readFileSync(path(`../histories/0.1.0/${name}.json`), 'utf8')) as History;
}

const base64 = (text: string) => Buffer.from(text).toString('base64');

test("a policy that chooses another model fails the replay, which Temporal's own does not see", async () => {
  const bundle = await bundleWorkflows({ workflowsPath: otherChoice });
  const options = { workflowBundle: bundle, dataConverter: { payloadConverterPath } };
  await Worker.runReplayHistory(options, toProto(recorded('model-choice')) as never);

  await expect(replayHistory(recorded('model-choice'), { workflowsPath: otherChoice })).rejects.toMatchObject({
    code: 'policy_changed',
    message: expect.stringContaining(
      '(streamAssistantResponse of run r1, turn 1) would be given another model: "scripted/third", where the history has "scripted/other"',
    ),
    details: {
      effect: 'streamAssistantResponse',
      path: 'model',
      recorded: 'scripted/other',
      replayed: 'scripted/third',
    },
  });
});

test('a policy that goes another way fails the replay, and the others still get their results', async () => {
  const histories = { stops: recorded('own-context'), tools: recorded('tools') };
  const [stops, tools] = await replayHistories(histories, { workflowsPath: otherChoice });
  expect(stops).toMatchObject({ name: 'stops', error: { code: 'policy_changed' } });
  expect(tools).toEqual({ name: 'tools' });
});

test('a local effect that would be given something else is found by the digest in its result', async () => {
  const history = recorded('local-effects');
  const [payload] = history.events.flatMap(
    (event) => event.markerRecordedEventAttributes?.details.result.payloads ?? [],
  );
  const result = JSON.parse(Buffer.from(payload?.data ?? '', 'base64').toString()) as { inputDigest: string };
  if (payload !== undefined) payload.data = base64(JSON.stringify({ ...result, inputDigest: '0123456789abcdef' }));

  await expect(replayHistory(history, { workflowsPath })).rejects.toMatchObject({
    code: 'policy_changed',
    details: { effect: 'beforeToolCall', path: 'input', recorded: 'digest 0123456789abcdef' },
  });
});

test('payloads that are in the store are read from there, and asked for when it is not given', async () => {
  const history = recorded('own-context');
  const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
  const store = await openStore({ path: folder });
  try {
    for (const event of history.events) {
      for (const payload of event.activityTaskScheduledEventAttributes?.input.payloads ?? []) {
        const data = Buffer.from(payload.data, 'base64');
        const digest = createHash('sha256').update(data).digest('hex');
        await store.putBlob(digest, data);
        payload.data = base64(digest);
        payload.metadata = { encoding: base64('everturn/claim'), 'claimed-encoding': base64('json/plain') };
      }
    }
    await replayHistory(history, { workflowsPath, store });
    await expect(replayHistory(history, { workflowsPath })).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringContaining('are in the store'),
    });
  } finally {
    await store.close();
    await rm(folder, { recursive: true });
  }
});

test.each([{}, { events: [] }, { events: [{ eventId: '5' }] }])('%j is refused as no history', async (history) => {
  await expect(replayHistory(history)).rejects.toMatchObject({ code: 'invalid_argument' });
});

import { globSync, readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { type ReplayResult, replayHistories } from '../../src/testing/replay.ts';

// I6: what was recorded by any version replays on today's code, effect by effect with the same input.

const folder = fileURLToPath(new URL('../histories/', import.meta.url));
const workflowsPath = fileURLToPath(new URL('../support/workflows.ts', import.meta.url));
const names = globSync('*/*.json', { cwd: folder }).sort();
const texts = new Map(names.map((name) => [name, readFileSync(`${folder}${name}`, 'utf8')]));

let results: Map<string, ReplayResult>;

beforeAll(async () => {
  const histories = Object.fromEntries([...texts].map(([name, text]) => [name, JSON.parse(text) as object]));
  const replayed = await replayHistories(histories, { workflowsPath });
  results = new Map(replayed.map((result) => [result.name, result]));
}, 120_000);

describe.each(names)('the history %s', (name) => {
  test('replays on the code of today', () => {
    expect(results.get(name)).toEqual({ name });
  });

  test('names nothing of the machine that recorded it', () => {
    const payloads = [...(texts.get(name) ?? '').matchAll(/"([A-Za-z0-9+/]{16,}={0,2})"/g)];
    const text = [texts.get(name), ...payloads.map(([, data = '']) => Buffer.from(data, 'base64').toString())].join(
      '\n',
    );
    const found = [`@${hostname()}`, `/${userInfo().username}/`, 'file://', '/src/', '/test/'].filter((word) =>
      text.includes(word),
    );
    expect(found).toEqual([]);
    expect((texts.get(name) ?? '').length).toBeLessThan(100_000);
  });
});

test('there is a history of each kind', () => {
  const kinds = names.map((name) => name.replace(/^.*\//, '').replace(/(-\d+)?\.json$/, ''));
  expect([...new Set(kinds)]).toEqual([
    ...['abort', 'continue-as-new', 'crash-and-retry', 'follow-up', 'gates', 'local-effects', 'model-choice'],
    ...[
      'model-error',
      'own-context',
      'parallel-batch',
      'sequential-batch',
      'settings',
      'steering-hook',
      'steering',
      'tools',
    ],
  ]);
});

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import type { Store } from '../../src/store/types.ts';
import { entry, fence, readAll, takeOver, tempFolder, tempSession, tempStore } from './helpers.ts';

type Child = ChildProcessByStdio<null, Readable, null>;

const script = fileURLToPath(new URL('./child.ts', import.meta.url));

function startChild(path: string, sessionId: string, count: number, prefix: string): Child {
  const args = ['--disable-warning=ExperimentalWarning', script, path, sessionId, `${count}`, prefix];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** The numbers that the child printed, each a commit that it was promised. */
function promisesOf(child: Child): { last: number } {
  const promised = { last: -1 };
  createInterface({ input: child.stdout }).on('line', (line) => {
    promised.last = Number(line);
  });
  return promised;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** How many records each commit of the prefix has in the log. */
async function commitsIn(store: Store, prefix: string): Promise<Map<number, number>> {
  const commits = new Map<number, number>();
  for (const { key } of await readAll(store)) {
    if (!key.startsWith(prefix)) continue;
    const number = Number(key.slice(prefix.length).split('/')[0]);
    commits.set(number, (commits.get(number) ?? 0) + 1);
  }
  return commits;
}

describe('several processes', () => {
  test('two children and this process write one session without a gap, and idle children end', async () => {
    const path = tempFolder();
    const store = await tempSession({ path });
    const children = ['c', 'd'].map((prefix) => startChild(path, 's', 60, prefix));
    const exits = children.map((child) => once(child, 'exit'));
    for (const child of children) child.stdout.resume();
    for (let number = 0; number < 60; number++) {
      await store.commit(fence(`m${number}`), { records: [entry(`m${number}`)] });
    }
    expect((await Promise.all(exits)).map(([code]) => code)).toEqual([0, 0]);
    expect(await store.verify('s')).toEqual({ ok: true, length: 1 + 60 * 7 });
    const path400 = await store.readPath('s', (await store.readSession('s'))?.leaf ?? '');
    expect(path400.entries).toHaveLength(60 * 7);
    expect(await store.readSession('s')).toMatchObject({ epoch: 1 });
  });

  test('kill -9 in a stream of commits leaves every promised one, and none in part', async () => {
    const path = tempFolder();
    for (const prefix of ['a', 'b', 'c']) {
      const child = startChild(path, 's', 100_000, prefix);
      const exited = once(child, 'exit');
      const promised = promisesOf(child);
      await until(() => promised.last >= 30);
      child.kill('SIGKILL');
      await exited;
      const store = await tempStore({ path });
      expect(await store.verify('s')).toMatchObject({ ok: true });
      const commits = await commitsIn(store, prefix);
      expect([...commits.values()].every((records) => records === 3)).toBe(true);
      expect([...commits.keys()]).toEqual([...commits.keys()].map((_, index) => index));
      expect(commits.size).toBeGreaterThan(promised.last);
      await store.close();
    }
    const heir = await tempStore({ path });
    expect(await takeOver(heir, 'w2')).toMatchObject({ epoch: 2 });
    await heir.commit(fence('after', { workflowRunId: 'w2' }), { records: [entry('after')] });
    expect(await heir.verify('s')).toMatchObject({ ok: true });
  });

  test('what a process finds after another has committed is what it committed', async () => {
    const path = tempFolder();
    const one = await tempSession({ path });
    const two = await tempStore({ path });
    for (let number = 0; number < 20; number++) {
      await one.commit(fence(`e${number}`), { records: [entry(`e${number}`)] });
      expect((await two.readSession('s'))?.leaf).toBe(`e${number}`);
    }
  });
});

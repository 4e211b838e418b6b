import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from '@jest/globals';
import { canonicalJson } from '../../src/common/json.ts';
import type { Store } from '../../src/store/types.ts';
import { entry, event, fence, moveLeaf, readAll, story, tempFolder, tempSession, tempStore } from './helpers.ts';

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function append(store: Store, effect: string, ids: string[]): Promise<void> {
  await store.commit(fence(effect), { records: ids.map((id) => entry(id)) });
}

describe('the log', () => {
  test('offsets are dense, from 0, and apart for each session', async () => {
    const store = await tempSession();
    await store.openSession({
      sessionId: 'other',
      workflowRunId: 'x',
      defaults: { agent: 'a', model: 'm', thinkingLevel: 'off', activeTools: [] },
    });
    await append(store, 'one', ['a', 'b']);
    await append(store, 'two', ['c']);
    expect((await readAll(store)).map((record) => record.offset)).toEqual([0, 1, 2, 3]);
    expect((await readAll(store, 'other')).map((record) => record.offset)).toEqual([0]);
    expect((await store.readLog('s', 1, 2)).map((record) => record.key)).toEqual(['a', 'b']);
  });

  test('a key that is there already is skipped, and what is stored wins', async () => {
    const store = await tempSession();
    await store.commit(fence('one'), { records: [entry('a', 'first'), entry('a', 'twice in one commit')] });
    const again = await store.commit(fence('two'), { records: [entry('b'), entry('a', 'later')] });
    expect(again).toEqual({ leaf: 'b' });
    expect(await story(store)).toEqual(['session_open', 'user a', 'user b']);
    const [a] = await store.readEntries('s', ['a']);
    expect(a).toMatchObject({ message: { content: [{ text: 'first' }] } });
  });

  test('records carry run, turn and time of their effect', async () => {
    const store = await tempSession();
    const before = Date.now();
    await store.commit(fence('one', { runId: 'r7', turn: 3 }), { records: [entry('a')] });
    const record = (await readAll(store))[1]!;
    expect(record).toMatchObject({ runId: 'r7', turn: 3, key: 'a' });
    expect(record.at).toBeGreaterThanOrEqual(before);
  });

  test('each hash covers the record and the hash before it', async () => {
    const store = await tempSession();
    await append(store, 'one', ['a', 'b']);
    let previous = sha256('s');
    for (const { hash, ...record } of await readAll(store)) {
      previous = sha256(previous + canonicalJson(record));
      expect(hash).toBe(previous);
    }
    expect((await store.readSession('s'))?.headHash).toBe(previous);
  });

  test('an entry gets the leaf as its parent and becomes the leaf', async () => {
    const store = await tempSession();
    await append(store, 'one', ['a', 'b']);
    const entries = await store.readEntries('s', ['b', 'missing', 'a']);
    expect(entries.map(({ id, parentId }) => [id, parentId])).toEqual([
      ['b', 'a'],
      ['a', null],
    ]);
    expect((await store.readSession('s'))?.leaf).toBe('b');
  });

  test('a leaf entry moves the leaf, and its retry does not move it back', async () => {
    const store = await tempSession();
    await append(store, 'one', ['a', 'b']);
    expect(await store.commit(fence('two'), { records: [moveLeaf('jump', 'a')] })).toEqual({ leaf: 'a' });
    await append(store, 'three', ['c']);
    expect(await store.commit(fence('two'), { records: [moveLeaf('jump', 'a')] })).toEqual({ leaf: 'c' });
    const [c] = await store.readEntries('s', ['c']);
    expect(c?.parentId).toBe('a');
    await store.commit(fence('four'), { records: [moveLeaf('root', null)] });
    expect((await store.readSession('s'))?.leaf).toBeNull();
  });

  test('a leaf entry with an unknown target is refused with all of its commit', async () => {
    const store = await tempSession();
    const commit = store.commit(fence('one'), { records: [entry('a'), moveLeaf('jump', 'nowhere')] });
    await expect(commit).rejects.toMatchObject({ code: 'not_found' });
    expect(await story(store)).toEqual(['session_open']);
  });

  test('keys that JavaScript treats specially survive', async () => {
    const store = await tempSession();
    const args = JSON.parse('{"a\\u0000b":"\\ud800","1":1,"0":"\\u2028"}') as unknown;
    await store.commit(fence('one'), {
      records: [event('k', { type: 'tool_execution_start', toolCallId: 'c', toolName: 't', args })],
    });
    expect((await readAll(store))[1]?.body).toMatchObject({ event: { args } });
    expect(await store.verify('s')).toEqual({ ok: true, length: 2 });
  });
});

describe('verify', () => {
  async function tampered(change: string): Promise<Awaited<ReturnType<Store['verify']>>> {
    const path = tempFolder();
    const store = await tempSession({ path });
    await append(store, 'one', ['a', 'b', 'c', 'd']);
    const database = new DatabaseSync(join(path, 'everturn.db'));
    database.exec(change);
    database.close();
    return store.verify('s');
  }

  test('an untouched log of several pages is right', async () => {
    const store = await tempSession();
    await append(
      store,
      'one',
      Array.from({ length: 1204 }, (_, index) => `e${index}`),
    );
    expect(await store.verify('s')).toEqual({ ok: true, length: 1205 });
  });

  test.each([
    [
      'one character of a text',
      `update records set body = replace(body, '"text":"b"', '"text":"B"') where key = 'b'`,
      2,
    ],
    [
      'white space that JSON ignores',
      `update records set body = replace(body, '{"kind', '{ "kind') || ' ' where key = 'c'`,
      3,
    ],
    ['a time', `update records set at = at + 1 where offset = 1`, 1],
    ['a run', `update records set run_id = null where offset = 3`, 3],
    ['a turn', `update records set turn = 1 where offset = 3`, 3],
    ['a key', `update records set key = 'z' where key = 'c'`, 3],
    ['a hash', `update records set hash = lower(hex(randomblob(32))) where offset = 2`, 2],
    ['a record in the middle that is gone', `delete from records where offset = 2`, 2],
    ['a missing tail', `delete from records where offset >= 3`, 3],
    [
      'a missing tail with a length to match',
      `delete from records where offset = 4; update sessions set length = 4`,
      4,
    ],
    ['a record behind the end', `update sessions set length = 3`, 3],
    ['a parent in the index', `update entries set parent_id = 'a' where entry_id = 'c'`, 3],
    ['an entry missing in the index', `delete from entries where entry_id = 'c'`, 3],
    ['an entry of the index alone', `insert into entries values ('s', 'x', null, 99)`, 5],
    ['the leaf', `update sessions set leaf = 'a'`, 5],
  ])('%s is found', async (_what, change, offset) => {
    expect(await tampered(change)).toMatchObject({ ok: false, offset });
  });

  test('an unknown session is not found', async () => {
    const store = await tempStore();
    await expect(store.verify('nobody')).rejects.toMatchObject({ code: 'not_found' });
  });
});

describe('blobs', () => {
  test('bytes come back under their digest, and twice is once', async () => {
    const store = await tempStore();
    const data = new Uint8Array([0, 255, 1, 254]);
    const digest = createHash('sha256').update(data).digest('hex');
    await store.putBlob(digest, data);
    await store.putBlob(digest, data);
    expect(await store.getBlob(digest)).toEqual(data);
    expect(await store.getBlob('missing')).toBeUndefined();
  });

  test('a digest that is not that of the data is refused', async () => {
    const store = await tempStore();
    await expect(store.putBlob('00', new Uint8Array([1]))).rejects.toMatchObject({ code: 'invalid_argument' });
  });
});

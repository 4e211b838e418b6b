import type { Json } from '../../common/json.ts';
import { putJson, readJson } from '../blobs.ts';
import type { Runtime } from '../runtime.ts';

/** What a hook made of a list: how much of both ends it kept, and the digest of what stands between. */
interface ListChange {
  prefix: number;
  suffix: number;
  middle?: string;
}

/**
 * Keeps a changed list as its difference: a hook that cuts or adds to a long conversation costs what it added, turn for
 * turn. Items count as kept when they are the same objects.
 */
export async function keepListChange<Item>(
  runtime: Runtime,
  before: readonly Item[],
  after: readonly Item[],
): Promise<Json> {
  const shorter = Math.min(before.length, after.length);
  let prefix = 0;
  while (prefix < shorter && before[prefix] === after[prefix]) prefix += 1;
  let suffix = 0;
  while (suffix < shorter - prefix && before[before.length - 1 - suffix] === after[after.length - 1 - suffix])
    suffix += 1;
  const middle = after.slice(prefix, after.length - suffix);
  const change: ListChange = { prefix, suffix };
  if (middle.length > 0) change.middle = await putJson(runtime, middle);
  return { ...change };
}

export async function restoreList<Item>(runtime: Runtime, before: readonly Item[], kept: Json): Promise<Item[]> {
  const { prefix, suffix, middle } = kept as unknown as ListChange;
  const between = middle === undefined ? [] : ((await readJson(runtime, middle)) as Item[]);
  return [...before.slice(0, prefix), ...between, ...before.slice(before.length - suffix)];
}

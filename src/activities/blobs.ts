import { hash } from 'node:crypto';
import { EverturnError } from '../common/errors.ts';
import { canonicalJson } from '../common/json.ts';
import type { Runtime } from './runtime.ts';

/** Keeps a value in the store under the digest of its canonical JSON. Equal values are kept once. */
export async function putJson(runtime: Pick<Runtime, 'store' | 'stored'>, value: unknown): Promise<string> {
  const data = Buffer.from(canonicalJson(value));
  const digest = hash('sha256', data, 'hex');
  // Frames of requests are the same turn after turn. Blobs are never deleted.
  if (runtime.stored.get(digest)) return digest;
  await runtime.store.putBlob(digest, data);
  runtime.stored.set(digest, true);
  return digest;
}

/** @throws EverturnError `store` when the digest is not there */
export async function readJson(runtime: Pick<Runtime, 'store'>, digest: string): Promise<unknown> {
  const data = await runtime.store.getBlob(digest);
  if (data === undefined) throw new EverturnError('store', `Blob ${digest} is not in the store.`);
  return JSON.parse(Buffer.from(data).toString('utf8'));
}

import { hash } from 'node:crypto';
import { EverturnError } from '../../common/errors.ts';
import type { Db } from '../schema.ts';

/** Keeps data under the hex SHA-256 of its bytes. */
export async function putBlob(db: Db, digest: string, data: Uint8Array): Promise<void> {
  const actual = hash('sha256', data, 'hex');
  if (actual !== digest) {
    throw new EverturnError('invalid_argument', `The digest of the blob is ${actual}, not ${digest}.`);
  }
  await db
    .insertInto('blobs')
    .values({ digest, data, at: Date.now() })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

export async function getBlob(db: Db, digest: string): Promise<Uint8Array | undefined> {
  const row = await db.selectFrom('blobs').select('data').where('digest', '=', digest).executeTakeFirst();
  return row?.data;
}

import { hash } from 'node:crypto';
import type { Payload, PayloadCodec } from '@temporalio/common';
import type { Store } from '../store/types.ts';

/** Payloads from this size on travel by digest. */
const claimCheckBytes = 32 * 1024;
/** The encoding of a payload that is in the store. */
export const claimEncoding = 'everturn/claim';
const wrapped = 'claimed-encoding';

type Blobs = Pick<Store, 'putBlob' | 'getBlob'>;

/**
 * Keeps histories small and every payload far below the server's 2 MB: what is large goes to the store, content
 * addressed, and its digest travels. A digest that is not in the store (a forged signal) becomes a value that says so;
 * a store that is away is an error, and the caller tries again.
 */
export class ClaimCheckCodec implements PayloadCodec {
  private readonly blobs: Blobs;

  constructor(blobs: Blobs) {
    this.blobs = blobs;
  }

  async encode(payloads: Payload[]): Promise<Payload[]> {
    return Promise.all(payloads.map((payload) => this.encodeOne(payload)));
  }

  async decode(payloads: Payload[]): Promise<Payload[]> {
    return Promise.all(payloads.map((payload) => this.decodeOne(payload)));
  }

  private async encodeOne(payload: Payload): Promise<Payload> {
    const { data, metadata } = payload;
    if (data === undefined || data === null || data.length < claimCheckBytes) return payload;
    const digest = hash('sha256', data, 'hex');
    await this.blobs.putBlob(digest, data);
    return {
      metadata: { ...metadata, [wrapped]: metadata?.encoding ?? bytes('json/plain'), encoding: bytes(claimEncoding) },
      data: bytes(digest),
    };
  }

  private async decodeOne(payload: Payload): Promise<Payload> {
    const { data, metadata } = payload;
    if (metadata?.encoding === undefined || text(metadata.encoding) !== claimEncoding) return payload;
    const digest = text(data ?? bytes(''));
    const stored = /^[0-9a-f]{64}$/.test(digest) ? await this.blobs.getBlob(digest) : undefined;
    if (stored === undefined) return malformed(`payload ${digest.slice(0, 64)} is not in the store`);
    const { [wrapped]: original, ...rest } = metadata;
    return { metadata: { ...rest, encoding: original ?? bytes('json/plain') }, data: stored };
  }
}

function malformed(reason: string): Payload {
  return { metadata: { encoding: bytes('json/plain') }, data: bytes(JSON.stringify({ malformed: reason })) };
}

function bytes(value: string): Uint8Array {
  return Buffer.from(value, 'utf8');
}

function text(value: Uint8Array): string {
  return Buffer.from(value).toString('utf8');
}

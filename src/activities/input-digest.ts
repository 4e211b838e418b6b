import { hash } from 'node:crypto';
import { canonicalJson } from '../common/json.ts';

/** Under this name the result of a local activity has the digest of its input. */
export const inputDigestKey = 'inputDigest';

/** Short: it tells a changed input, it protects nothing. */
const digits = 16;

/** A digest of what a local activity was given. Temporal keeps its result alone, so the result has this. */
export function inputDigest(input: unknown): string {
  return hash('sha256', canonicalJson(JSON.parse(JSON.stringify(input))), 'hex').slice(0, digits);
}

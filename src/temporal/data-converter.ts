import { fileURLToPath } from 'node:url';
import type { DataConverter } from '@temporalio/common';
import type { Store } from '../store/types.ts';
import { ClaimCheckCodec } from './claim-check.ts';

/** Where the converter is, for the bundle of workflow code. */
export const payloadConverterPath = fileURLToPath(new URL('../workflows/payload-converter.cjs', import.meta.url));

/** Workers and clients of one session must use the same store: it has the large payloads. */
export function dataConverterOf(store: Store): DataConverter {
  return { payloadConverterPath, payloadCodecs: [new ClaimCheckCodec(store)] };
}

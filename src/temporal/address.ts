import { EverturnError, errorText } from '../common/errors.ts';

export const defaultAddress = '127.0.0.1:7233';
export const defaultNamespace = 'default';

export interface TemporalOptions {
  /** host:port. Default: TEMPORAL_ADDRESS, else 127.0.0.1:7233. */
  address?: string;
  /** Default: TEMPORAL_NAMESPACE, else "default". */
  namespace?: string;
}

export function temporalTarget(options: TemporalOptions): { address: string; namespace: string } {
  return {
    address: options.address ?? process.env.TEMPORAL_ADDRESS ?? defaultAddress,
    namespace: options.namespace ?? process.env.TEMPORAL_NAMESPACE ?? defaultNamespace,
  };
}

export function unreachable(address: string, cause: unknown): EverturnError {
  return new EverturnError(
    'temporal_unavailable',
    `No Temporal server answers at ${address} (${errorText(cause)}). Start one with "everturn dev", or set TEMPORAL_ADDRESS.`,
    { retryable: true, cause, details: { address } },
  );
}

export { type OpenStoreOptions, openStore } from './open-store.ts';
export type { Store } from './types.ts';

import { deepStrictEqual } from 'node:assert';
import { registerHooks } from 'node:module';

// Imported first by the scripts of this folder: the suite's checks use jest's `expect`, which refuses to load outside of
// jest. The little that they use of it stands in for it here.

/** @public `expect(…).toEqual(…)` on plain data; its error shows the difference. */
export function expect(actual: unknown): { toEqual(expected: unknown): void } {
  return { toEqual: (expected) => deepStrictEqual(actual, expected) };
}

registerHooks({
  resolve: (specifier, context, next) => next(specifier === '@jest/globals' ? import.meta.url : specifier, context),
});

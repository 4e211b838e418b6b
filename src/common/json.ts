/** A value that JSON can hold without loss. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * JSON with sorted object keys and without undefined values: equal values give equal text, so its digest may stand
 * for the value in the hash chain, in approvals and in the delta of what a model saw.
 */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) => {
    if (item === null || typeof item !== 'object' || Array.isArray(item)) return item;
    const source = item as Record<string, unknown>;
    // Without a prototype, so that a key like __proto__ is a key like any other.
    const sorted: Record<string, unknown> = Object.create(null);
    for (const key of Object.keys(source).sort()) sorted[key] = source[key];
    return sorted;
  });
}

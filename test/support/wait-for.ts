import { setTimeout as delay } from 'node:timers/promises';

/**
 * Returns what the condition gives as soon as it is neither false nor undefined. What it throws counts as "not yet",
 * and is told when the time is up.
 */
export async function waitFor<T>(
  condition: () => T | false | undefined | Promise<T | false | undefined>,
  options: { timeoutMs?: number; what: string },
): Promise<T> {
  const deadline = Date.now() + (options.timeoutMs ?? 30_000);
  let last: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value !== false && value !== undefined) return value;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline)
      throw new Error(`Waited in vain for ${options.what}`, last === undefined ? {} : { cause: last });
    await delay(20);
  }
}

import type { Observation } from './observation.ts';
import { collapse } from './pi-events.ts';
import { aborts } from './rules/aborts.ts';
import { eventPlaces } from './rules/event-places.ts';
import { hookOrder } from './rules/hook-order.ts';
import { hookThrows } from './rules/hook-throws.ts';
import { shims } from './rules/shims.ts';
import type { Scenario } from './scenario.ts';

/** What a rule may change: pi's side becomes what the difference says Everturn does, or both become what they share. */
export interface Sides {
  scenario: Scenario;
  pi: Observation;
  everturn: Observation;
  /** Tells that a difference was applied, by its number in docs/differences.md. */
  use(number: number): void;
}

/** One or a few numbered differences. */
export type Rule = (sides: Sides) => void;

// Each rule may rely on what those before it have made alike.
const rules: readonly Rule[] = [shims, aborts, hookThrows, hookOrder, eventPlaces];

const harnessEvents: ReadonlySet<string> = new Set([
  'queue_update',
  'save_point',
  'settled',
  'abort',
  'after_provider_response',
]);

/** Applies the numbered differences. The observations are not changed. */
export function applyDifferences(
  scenario: Scenario,
  pi: Observation,
  everturn: Observation,
): { expected: Observation; actual: Observation; used: number[] } {
  const used = new Set<number>();
  const prepared = (side: Observation): Observation => {
    const copy = structuredClone(side);
    return { ...copy, events: collapse(copy.events) };
  };
  const sides: Sides = { scenario, pi: prepared(pi), everturn: prepared(everturn), use: (number) => used.add(number) };
  // pi's loop knows nothing of what the harness tells.
  if (scenario.setup.layer === 'loop')
    sides.everturn.events = sides.everturn.events.filter(({ type }) => !harnessEvents.has(type));
  for (const rule of rules) rule(sides);
  for (const call of [...sides.pi.calls, ...sides.everturn.calls]) delete call.aborted;
  const { transcript, requests, calls, events, ends, policyCalls } = sides.everturn;
  return { expected: sides.pi, actual: { transcript, requests, calls, events, ends, policyCalls }, used: [...used] };
}

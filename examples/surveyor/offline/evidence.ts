import type { JsonObject } from '@earendil-works/pi-ai';
import type { CallRecord } from './journal.ts';

/** A tool call that the model may want to make. */
export interface Step {
  name: string;
  args: JsonObject;
}

const maxTries = 2;
/** Crashes are nobody's fault, so they cost less. */
const maxTriesAfterCrash = 4;

/** What is known from the calls so far, asked by the call that would tell it. */
export class Evidence {
  readonly #calls = new Map<string, CallRecord[]>();
  readonly #tools: ReadonlySet<string>;
  /** Commands that a dying worker cut off. */
  readonly cutOff: number;

  constructor(calls: readonly CallRecord[], tools: ReadonlySet<string>) {
    this.#tools = tools;
    this.cutOff = calls.filter((call) => call.name === 'bash' && isOutcomeUnknown(call)).length;
    for (const call of calls) {
      const key = keyOf(call);
      this.#calls.set(key, [...(this.#calls.get(key) ?? []), call]);
    }
  }

  /** The newest good result. */
  of(step: Step): string | undefined {
    return this.#tries(step).findLast((call) => call.text !== undefined && !call.isError)?.text;
  }

  /** What the newest try failed with, when none was good. */
  failureOf(step: Step): string | undefined {
    return this.of(step) === undefined ? this.#tries(step).at(-1)?.text : undefined;
  }

  /** Whether it is worth calling: the tool is there, no result yet, and not tried too often. This is why it never loops. */
  isOpen(step: Step): boolean {
    if (!this.#tools.has(step.name) || this.of(step) !== undefined) return false;
    const tries = this.#tries(step);
    return tries.length < (tries.some(isOutcomeUnknown) ? maxTriesAfterCrash : maxTries);
  }

  #tries(step: Step): CallRecord[] {
    return this.#calls.get(keyOf(step)) ?? [];
  }
}

/** A worker died in the call, and it was not repeated by itself. */
export function isOutcomeUnknown(call: CallRecord): boolean {
  return call.isError && /outcome (is )?unknown/i.test(call.text ?? '');
}

function keyOf({ name, args }: Step): string {
  return JSON.stringify([name, ...Object.entries(args).sort(([left], [right]) => (left < right ? -1 : 1))]);
}

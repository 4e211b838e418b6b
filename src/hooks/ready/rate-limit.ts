import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { HookInstaller } from '../../agent/agent.ts';
import { currentSession, currentSignal } from '../current-signal.ts';
import type { ToolCallResult } from '../harness-types.ts';
import type { HookSettings } from '../types.ts';
import { checkOptions } from './options.ts';
import { matcher, type Pattern, patternSchema } from './patterns.ts';

export interface RateLimitOptions {
  /** Calls per window. */
  calls: number;
  /** Milliseconds of the window, which slides. */
  windowMs: number;
  /** The tools that are limited. Default: all. */
  tools?: readonly Pattern[];
  /** `all` (default): they share one limit. `tool`: each has its own. */
  per?: 'all' | 'tool';
  /** Whose calls count together: those of this worker process (default), or those of one session in this process. */
  scope?: 'worker' | 'session';
  /** Milliseconds that a call waits for its turn before it is blocked. Default: 0. At most 30 minutes. */
  maxWaitMs?: number;
  hook?: Omit<HookSettings, 'local'>;
}

const optionsSchema = z.strictObject({
  calls: z.number().int().positive(),
  windowMs: z.number().int().positive(),
  tools: z.array(patternSchema).min(1).exactOptional(),
  per: z.enum(['all', 'tool']).default('all'),
  scope: z.enum(['worker', 'session']).default('worker'),
  // A gate has an hour.
  maxWaitMs: z
    .number()
    .int()
    .min(0)
    .max(30 * 60_000)
    .default(0),
  hook: z
    .custom<HookSettings>(
      (value) => (value as HookSettings | undefined)?.local !== true,
      'a limit that waits cannot be local',
    )
    .exactOptional(),
});

/**
 * Rate limiting: a call that is too early waits for its turn, up to maxWaitMs, or is blocked with a reason that names
 * the time. It waits in order of arrival, heartbeats, and gives its place back on an abort. The state is this process's:
 * ten workers allow ten times as much, and a restart forgets. A call that another gate refuses after this one has counted.
 */
export function rateLimit(options: RateLimitOptions): HookInstaller {
  const { tools, hook, ...limits } = checkOptions('rateLimit', optionsSchema, options);
  const limited = tools?.map(matcher);
  return (agent) => {
    const windows = new Windows(limits.calls, limits.windowMs, limits.maxWaitMs);
    return agent.on(
      'tool_call',
      ({ toolName }) => {
        if (limited !== undefined && !limited.some((matches) => matches(toolName))) return undefined;
        const session = limits.scope === 'session' ? currentSession()?.sessionId : undefined;
        return windows.pass(JSON.stringify([session, limits.per === 'tool' ? toolName : undefined]), toolName);
      },
      hook,
    );
  };
}

/** Milliseconds of a clock that no one sets. */
const now = () => performance.now();
/** Above so many windows those that are over are dropped. */
const sweepAbove = 1_000;

class Windows {
  /** Of each key the times of its last calls, past and reserved, oldest first. */
  private readonly times = new Map<string, number[]>();
  private readonly calls: number;
  private readonly windowMs: number;
  private readonly maxWaitMs: number;

  constructor(calls: number, windowMs: number, maxWaitMs: number) {
    this.calls = calls;
    this.windowMs = windowMs;
    this.maxWaitMs = maxWaitMs;
  }

  async pass(key: string, toolName: string): Promise<ToolCallResult | undefined> {
    const times = this.timesOf(key);
    const before = times.at(-this.calls);
    const turn = before === undefined ? now() : Math.max(now(), before + this.windowMs);
    const wait = turn - now();
    if (wait > this.maxWaitMs) return { block: true, reason: this.reason(toolName, wait) };
    times.push(turn);
    if (wait <= 0) return undefined;
    const signal = currentSignal();
    try {
      await delay(wait, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      times.splice(times.indexOf(turn), 1);
      throw error;
    }
    return undefined;
  }

  private timesOf(key: string): number[] {
    if (this.times.size > sweepAbove) this.sweep();
    const known = this.times.get(key) ?? [];
    this.times.set(key, known);
    const over = now() - this.windowMs;
    const first = known.findIndex((time) => time > over);
    known.splice(0, first < 0 ? known.length : first);
    return known;
  }

  private sweep(): void {
    const over = now() - this.windowMs;
    for (const [key, times] of this.times) if ((times.at(-1) ?? 0) < over) this.times.delete(key);
  }

  private reason(toolName: string, waitMs: number): string {
    const seconds = Math.ceil(waitMs / 1_000);
    return `Rate limit: ${this.calls} calls in ${this.windowMs / 1_000} s. Call ${toolName} again in ${seconds} s.`;
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import { ApplicationFailure, Context } from '@temporalio/activity';
import { EverturnError, isEverturnError, toErrorInfo } from '../common/errors.ts';
import type { NewRecord } from '../common/events.ts';
import type { Json } from '../common/json.ts';
import type { BegunEffect, Commit, CommitResult, Fence } from '../store/types.ts';
import type { Runtime } from './runtime.ts';

const heartbeatMs = 1_000;
const firstStorePauseMs = 100;
const maxStorePauseMs = 2_000;
/** A defect in our own code is tried this often, then ends the run with code `internal`. */
const defectAttempts = 5;
/** Lifts the attempt of a settling call above every attempt of the effect that it settles: those are fenced from then on. */
const settlingAttempt = 1_000_000;

/** Why an effect is asked to stop. `abort` ends the run; `shutdown` and `lost` leave the work to another attempt. */
export type StopReason = 'abort' | 'shutdown' | 'lost';

/** One attempt of an effect. */
export interface Effect {
  fence: Fence;
  /** Temporal's number of the attempt. */
  attempt: number;
  /** Attempts in all, also those before a reset: a live reader keeps the highest alone. */
  attempts: number;
  /** Fires on abort, on worker shutdown, and when another attempt has taken over. */
  signal: AbortSignal;
  stopReason(): StopReason | undefined;
  /** Stops what runs here as if another attempt had taken over: what it makes could not be written. */
  lose(): void;
  /** Milliseconds that what runs in the effect has to return after its signal fired. */
  graceMs: number;
  /** What became of `first`. */
  begun: Pick<BegunEffect, 'runEnded' | 'committed'>;
  commit(commit: Commit): Promise<CommitResult>;
  /** Commits what has no place in the log's order, with what hooks did so far: other notes wait for the next commit. */
  commitAside(commit: Commit): Promise<CommitResult>;
  /** Does something once for all attempts: what it gave is kept, and a retry gets it back without doing it again. */
  once<T>(name: string, make: () => Promise<T>): Promise<T>;
  /** What an earlier attempt kept under this name. */
  step(name: string): Json | undefined;
  saveStep(name: string, outcome: Json): Promise<void>;
  /**
   * The same without waiting: `kept` does. For what a crash may ask for once more until then, since nothing was done with
   * it yet.
   */
  saveStepSoon(name: string, outcome: Json): void;
  /** Resolves when every step that was saved soon is in the store. @throws what kept one from it */
  kept(): Promise<void>;
  /** Leaves a record for the next commit, before its own. */
  note(record: NewRecord): void;
}

export interface EffectPlace {
  /** Names the effect in the session. */
  effect: string;
  runId?: string;
  turn?: number;
  /** Written as the effect begins, unless there is nothing left to do: see `begun`. */
  first?: Commit | ((stopped: () => StopReason | undefined) => Promise<Commit>);
  /** True: settles the effect of this name instead of carrying it out. */
  settling?: boolean;
}

interface Adopting<Result> {
  /** What becomes of the result when it was there already. Default: it is given back as it is. */
  adopt?: (result: Result) => Promise<Result>;
}

/**
 * Runs one attempt of an effect: it heartbeats, hears of aborts, is fenced, and gives back the stored outcome when an
 * earlier attempt got that far. Errors leave as typed failures that are retryable or not on purpose.
 */
export async function runEffect<Result>(
  runtime: Runtime,
  place: EffectPlace & Adopting<Result>,
  body: (effect: Effect) => Promise<Result>,
): Promise<Result> {
  const context = Context.current();
  const fence = fenceOf(place);
  const stop = new Stop(runtime, fence, context);
  const heartbeat = setInterval(() => context.heartbeat(), heartbeatMs);
  try {
    const first = typeof place.first === 'function' ? await place.first(() => stop.reason) : place.first;
    const begun = await withOwnership(runtime, fence, () => runtime.store.beginEffect(fence, first));
    if (begun.result !== undefined) {
      const result = begun.result as Result;
      return place.adopt === undefined ? result : await place.adopt(result);
    }
    if (begun.abortRequested) stop.fire('abort');
    return await body(effectOf(runtime, fence, stop, begun));
  } catch (error) {
    throw toFailure(error, fence.attempt, stop.reason);
  } finally {
    clearInterval(heartbeat);
    stop.end();
  }
}

/**
 * What was done must not be lost, or done again, because the store is full or away for a while: as long as this worker
 * lives it is written here, and not by another attempt that knows nothing of it.
 */
async function untilStored<T>(stop: Stop, write: () => Promise<T>): Promise<T> {
  for (let pause = firstStorePauseMs; ; pause = Math.min(pause * 2, maxStorePauseMs)) {
    try {
      return await write();
    } catch (error) {
      const passing = isEverturnError(error) && error.retryable;
      if (!passing || stop.reason === 'shutdown' || stop.reason === 'lost') throw error;
      await delay(pause);
    }
  }
}

interface Step<Value> {
  value: Value;
  notes?: NewRecord[];
}

function effectOf(runtime: Runtime, fence: Fence, stop: Stop, begun: BegunEffect): Effect {
  const { steps, attempts } = begun;
  const notes: NewRecord[] = [];
  const write = (commit: Commit) => untilStored(stop, () => runtime.store.commit(fence, commit));
  let saving: Promise<unknown> = Promise.resolve();
  const save = (name: string, outcome: Json) => untilStored(stop, () => runtime.store.saveStep(fence, name, outcome));
  return {
    fence,
    attempt: fence.attempt,
    attempts,
    signal: stop.signal,
    stopReason: () => stop.reason,
    lose: () => stop.fire('lost'),
    graceMs: runtime.graceMs,
    begun,
    commit: (commit) => write({ ...commit, records: [...notes.splice(0), ...(commit.records ?? [])] }),
    commitAside: (commit) => {
      const isHook = (record: NewRecord) => record.kind === 'event' && record.event.type === 'hook';
      const records = notes.filter(isHook);
      notes.splice(0, notes.length, ...notes.filter((record) => !isHook(record)));
      return write({ ...commit, records });
    },
    step: (name) => steps[name],
    saveStep: async (name, outcome) => {
      steps[name] = await save(name, outcome);
    },
    saveStepSoon: (name, outcome) => {
      steps[name] = outcome;
      saving = Promise.all([saving, save(name, outcome)]);
      // Told by `kept`, which an effect asks before it goes on to the world.
      saving.catch(() => {});
    },
    kept: async () => {
      await saving;
    },
    note: (record) => notes.push(record),
    once: async (name, make) => {
      const kept = steps[name] as unknown as Step<never> | undefined;
      if (kept !== undefined) {
        // What was noted meanwhile went with that attempt, unless it committed once more: its keys are unique.
        notes.push(...(kept.notes ?? []));
        return kept.value;
      }
      const before = notes.length;
      const value = await make();
      const made = notes.slice(before);
      const step = { value: value ?? null, ...(made.length === 0 ? {} : { notes: made }) };
      const saved = await save(name, step as unknown as Json);
      return (saved as unknown as Step<never>).value;
    },
  };
}

/** One fenced write without a beginning of its own: repeated, it changes nothing since all of its keys are unique. */
export async function runWrite<Result>(
  runtime: Runtime,
  place: EffectPlace,
  body: (fence: Fence) => Promise<Result>,
): Promise<Result> {
  const fence = fenceOf(place);
  try {
    return await withOwnership(runtime, fence, () => body(fence));
  } catch (error) {
    throw toFailure(error, fence.attempt, undefined);
  }
}

/** The session that the running effect belongs to: its workflow has the same id. */
export function effectSession(): string {
  return execution().workflowId;
}

function execution(): { workflowId: string; runId: string } {
  const { workflowExecution } = Context.current().info;
  if (workflowExecution === undefined) throw new EverturnError('internal', 'effects run in a workflow only');
  return workflowExecution;
}

function fenceOf(place: EffectPlace): Fence {
  const { info } = Context.current();
  const { workflowId, runId } = execution();
  return {
    sessionId: workflowId,
    workflowRunId: runId,
    effect: place.effect,
    attempt: place.settling ? settlingAttempt + info.attempt : info.attempt,
    ...(place.runId === undefined ? {} : { runId: place.runId }),
    ...(place.turn === undefined ? {} : { turn: place.turn }),
  };
}

/**
 * After `workflow reset` the session's owner in the store is the run before the reset. Temporal alone knows which
 * workflow run is the living one, so it is asked: that one takes the session over, any other stays fenced.
 */
async function withOwnership<T>(runtime: Runtime, fence: Fence, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (
      !isEverturnError(error, 'fenced') ||
      fenceReason(error) !== 'owner' ||
      !(await isLivingRun(fence.sessionId, fence.workflowRunId))
    )
      throw error;
    const session = await runtime.store.readSession(fence.sessionId);
    if (session === undefined) throw error;
    await runtime.store.openSession({
      sessionId: fence.sessionId,
      workflowRunId: fence.workflowRunId,
      defaults: session,
      living: true,
      ...(fence.runId === undefined ? {} : { continuingRunId: fence.runId }),
    });
    return call();
  }
}

function fenceReason(error: EverturnError): unknown {
  return (error.details as { reason?: unknown } | undefined)?.reason;
}

/** Whether Temporal says that this workflow run is the session's current one. */
export async function isLivingRun(sessionId: string, workflowRunId: string): Promise<boolean> {
  const handle = Context.current().client.workflow.getHandle(sessionId);
  const { runId, status } = await handle.describe();
  return runId === workflowRunId && status.name === 'RUNNING';
}

/** Any error as Temporal is to see it: typed, and retryable or not on purpose. */
export function toFailure(error: unknown, attempt: number, stopped: StopReason | undefined): unknown {
  if (error instanceof ApplicationFailure) return error;
  const info = toErrorInfo(error);
  const known = isEverturnError(error);
  const retryable =
    stopped === 'shutdown' || stopped === 'lost' || (known ? error.retryable : attempt < defectAttempts);
  return ApplicationFailure.create({
    type: info.code,
    message: info.message,
    nonRetryable: !retryable,
    details: [info],
    ...(error instanceof Error ? { cause: error } : {}),
  });
}

class Stop {
  reason: StopReason | undefined;
  private readonly controller = new AbortController();
  private readonly unwatch: () => void;
  private readonly context: Context;
  private readonly onCancel = () => {
    const reason = this.cancelReason();
    if (reason === 'abort' && this.context.info.isLocal) void this.askWhether();
    else this.fire(reason);
  };
  private readonly runtime: Runtime;
  private readonly fence: Fence;

  constructor(runtime: Runtime, fence: Fence, context: Context) {
    this.runtime = runtime;
    this.fence = fence;
    this.context = context;
    if (context.cancellationSignal.aborted) this.onCancel();
    else context.cancellationSignal.addEventListener('abort', this.onCancel, { once: true });
    this.unwatch =
      fence.runId === undefined
        ? () => {}
        : runtime.controls.watch(fence.sessionId, fence.runId, () => this.fire('abort'));
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  fire(reason: StopReason): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.controller.abort(
      new EverturnError('cancelled', reason === 'abort' ? 'Operation aborted' : 'The worker stops'),
    );
  }

  end(): void {
    this.context.cancellationSignal.removeEventListener('abort', this.onCancel);
    this.unwatch();
  }

  /**
   * A local activity hears the same word when its workflow task ran out, and another one repeats it: nobody has aborted
   * anything then, and nothing may be kept that says so. An abort that only a signal knows of ends the run without it.
   */
  private async askWhether(): Promise<void> {
    const { sessionId, runId } = this.fence;
    const controls = await this.runtime.store.readControls([sessionId]).catch(() => []);
    this.fire(controls.some((control) => control.runId === runId) ? 'abort' : 'lost');
  }

  private cancelReason(): StopReason {
    const details = this.context.cancellationDetails;
    if (details?.cancelRequested) return 'abort';
    return details?.workerShutdown ? 'shutdown' : 'lost';
  }
}

import { Context } from '@temporalio/activity';
import type { Worker } from '@temporalio/worker';
import type { Fence, Store } from '../../src/store/types.ts';
import type { ScriptedReply, ScriptedRequest } from '../../src/testing/scripted-model.ts';
import type { Evidence } from '../support/evidence.ts';
import { repliesFile } from '../support/worker-process.ts';
import { fullFile, isFault, point, pointsLog, standingFile, streamFile } from './points.ts';

// The kill points of a worker, put around the product's own parts from outside: nothing of them is in the product, so
// they cost nothing there, and what is added to it later has its points by itself.

type Of = (sessionId: string) => Evidence;

const fencedWrites = ['beginEffect', 'saveStep', 'commit'] as const;

/** Points before and after each transaction of the log. */
export function holdable(store: Store, of: Of): Store {
  const counts = new Map<string, number>();
  const around = async <T>(sessionId: string, what: string, write: () => Promise<T>): Promise<T> => {
    const key = `${sessionId} ${what}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    const name = count === 1 ? what : `${what} (${count})`;
    await point(of(sessionId), `before ${name}`);
    const done = await write();
    await point(of(sessionId), `after ${name}`);
    return done;
  };
  const held = {
    ...store,
    openSession: (request) => around(request.sessionId, 'openSession', () => store.openSession(request)),
  } satisfies Store;
  for (const method of fencedWrites) {
    const write = store[method] as (fence: Fence, ...rest: unknown[]) => Promise<never>;
    const hold = (fence: Fence, ...rest: unknown[]) =>
      around(fence.sessionId, `${method} of ${effectName(fence)}`, () => write(fence, ...rest));
    Object.assign(held, { [method]: hold });
  }
  return held;
}

/** While the file says so, the log can get no further page: every write that needs one fails with SQLite's own error. */
export function fillable(store: Store, full: Store, root: Evidence): Store {
  const filled = { ...store };
  for (const method of ['openSession', ...fencedWrites, 'putBlob'] as const) {
    const write = (...args: unknown[]) =>
      ((root.has(fullFile) ? full : store)[method] as (...args: unknown[]) => Promise<never>)(...args);
    Object.assign(filled, { [method]: write });
  }
  return filled;
}

/** The tag of the chain is Temporal's chance: the point has the same name in every session. */
function effectName({ effect }: Fence): string {
  return effect.replace(/^[0-9a-f]{12}\//, '');
}

type Activities = Record<string, (input: unknown) => Promise<unknown>>;

/** Points before an activity begins, and when it is done and has not been reported. */
export function holdableActivities(activities: object | undefined, of: Of): Activities {
  const held = Object.entries((activities ?? {}) as Activities).map(([name, run]) => {
    const around = async (input: unknown) => {
      const { info } = Context.current();
      const evidence = of(info.workflowExecution?.workflowId ?? '');
      await point(evidence, `before activity ${info.activityId} ${name}`);
      const result = await run(input);
      await point(evidence, `after activity ${info.activityId} ${name}`);
      return result;
    };
    return [name, around] as const;
  });
  return Object.fromEntries(held);
}

interface Activation {
  activation: { jobs: { initializeWorkflow?: { workflowId?: string }; resolveActivity?: { seq?: number } }[] };
}
interface Held {
  workflowCodecRunner: { workflowContext: { workflowId: string } };
}
/** The part of Temporal's worker (1.24) that carries out one activation: there is no public place for this point. */
interface Inside {
  handleActivation(workflow: Held | undefined, activation: Activation): Promise<unknown>;
}

/** Points before a workflow task goes through the workflow's code, and after that before its commands are reported. */
export function holdTasks(worker: Worker, of: Of): void {
  const inside = worker as unknown as Inside;
  const handle = inside.handleActivation.bind(worker);
  inside.handleActivation = async (workflow, task) => {
    const { jobs } = task.activation;
    const begins = jobs.find((job) => job.initializeWorkflow)?.initializeWorkflow?.workflowId;
    const resolved = jobs.find((job) => job.resolveActivity)?.resolveActivity?.seq;
    const sessionId = begins ?? workflow?.workflowCodecRunner.workflowContext.workflowId;
    const what =
      begins !== undefined ? 'the first task' : resolved === undefined ? undefined : `the task of ${resolved}`;
    if (sessionId === undefined || what === undefined) return handle(workflow, task);
    await point(of(sessionId), `before ${what}`);
    const completion = await handle(workflow, task);
    await point(of(sessionId), `after ${what}`);
    return completion;
  };
}

/** The session's script, with points before the first token, between tokens, and after the last one. */
export function replyOf(of: Of, { reply, options }: ScriptedRequest): ScriptedReply {
  const evidence = of(options.sessionId ?? '');
  const script = JSON.parse(evidence.text(repliesFile)) as ScriptedReply[];
  const played = script[reply] ?? { text: 'More' };
  // One that fails has no tokens to stand between.
  if (played.error !== undefined) return played;
  const places = [
    ['before the first token', 0],
    ['between tokens', 1],
    ['after the last token', 'all'],
  ] as const;
  for (const [where, holdAfterChunks] of places) {
    const name = `inside request ${reply}, ${where}`;
    evidence.note(pointsLog, { what: name });
    if (!isFault(evidence, name)) continue;
    evidence.put(standingFile);
    return { ...played, holdUntilFile: evidence.path(streamFile), holdAfterChunks };
  }
  return played;
}

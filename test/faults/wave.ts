import { setTimeout as delay } from 'node:timers/promises';
import type { LogRecord } from '../../src/common/events.ts';
import { waitFor } from '../support/wait-for.ts';
import type { FaultCase, Twist } from './cases.ts';
import { check, checkEntries, type Problem } from './check.ts';
import { MortalServer } from './mortal-server.ts';
import { faultFile, standingFile, streamFile } from './points.ts';
import { promptText } from './scenarios.ts';
import { type FaultSession, FaultStage, type Ground } from './stage.ts';
import { strike } from './strike.ts';

export interface CaseResult {
  name: string;
  problems: Problem[];
}

export interface WaveOptions {
  ground: Ground;
  /** Logs of the undisturbed runs, by scenario. */
  undisturbed: ReadonlyMap<string, readonly LogRecord[]>;
}

interface Standing {
  each: FaultCase;
  session: FaultSession;
  prompt: Promise<unknown>;
  accepted: string[];
}

const standTimeoutMs = 60_000;
const endTimeoutMs = 180_000;

/**
 * Plays cases of one blow together: every session comes to its point, the blow falls on all of them at once, and then each
 * is followed to its end and checked.
 */
export async function playWave(cases: readonly FaultCase[], options: WaveOptions): Promise<CaseResult[]> {
  const blow = cases[0]?.blow ?? 'kill';
  const server = blow === 'server' ? await MortalServer.start() : undefined;
  const { bundle, address } = options.ground;
  const stage = await FaultStage.open({ bundle, address: server?.address ?? address });
  try {
    const worker = await stage.startWorker(blow === 'locked' ? { busyTimeoutMs: 500 } : {});
    const standing = cases.map((each, index) => start(stage, each, index));
    const stuck = new Map<Standing, string>();
    await Promise.all(standing.map((one) => stand(one).catch((error) => stuck.set(one, String(error)))));
    await Promise.all(standing.map((one) => send(one, 'at the point')));
    const meanwhile = async () => {
      await Promise.all(standing.map((one) => send(one, 'while no worker lives')));
      // The frozen ones keep what they hold until they wake up.
      if (blow !== 'freeze') for (const { session } of standing) release(session);
    };
    const wake = await strike(blow, { stage, worker, server, meanwhile });
    const results = await Promise.all(
      standing.map(async (one): Promise<CaseResult> => {
        const why = stuck.get(one);
        const problems = why === undefined ? await follow(one, options) : [{ kind: 'other' as const, text: why }];
        return { name: one.each.name, problems };
      }),
    );
    if (wake !== undefined) await checkZombies(standing, results, wake);
    return results;
  } finally {
    await stage.end();
    await server?.end();
  }
}

function start(stage: FaultStage, each: FaultCase, index: number): Standing {
  const session = stage.session(index, each.scenario);
  session.evidence.put(faultFile, each.point);
  const prompt = session.session.prompt(promptText, { runId: 'r1' });
  prompt.catch(() => undefined);
  return { each, session, prompt, accepted: [promptText] };
}

/** Waits until it stands at its point, or has gone past it: two tasks of a parallel batch may be one. */
async function stand({ each, session }: Standing): Promise<void> {
  const { evidence, store, sessionId } = session;
  const stands = () =>
    evidence.has(standingFile) && (!each.point.startsWith('inside request') || evidence.has(`${streamFile}.waiting`));
  const ended = async () => ((await store.readRun(sessionId, 'r1'))?.status ?? 'open') !== 'open';
  await waitFor(async () => stands() || (each.scenario.name === 'parallel' && (await ended())), {
    what: `${sessionId}: its point`,
    timeoutMs: standTimeoutMs,
  });
}

async function send({ each, session, accepted }: Standing, when: Twist['when']): Promise<void> {
  const { twist } = each;
  if (twist?.when !== when) return;
  // Two messages, so that it shows how many a drain takes.
  const texts = [`${twist.what} one`, `${twist.what} two`];
  for (const text of texts) {
    accepted.push(text);
    if (twist.what === 'followUp') await session.session.followUp(text);
    else await session.session.steer(text);
  }
  if (twist.what === 'abort') await session.session.sendAbort('r1');
}

/** Lets go of what stands. */
function release({ evidence }: FaultSession): void {
  evidence.put(streamFile);
  evidence.remove(faultFile);
}

async function follow({ each, session, prompt, accepted }: Standing, options: WaveOptions): Promise<Problem[]> {
  const signal = AbortSignal.timeout(endTimeoutMs);
  const undisturbed = options.undisturbed.get(each.scenario.name) ?? [];
  try {
    // What the server's death cut off is sent once more, with the same run id.
    const again = prompt.catch(() => persist(() => session.session.prompt(promptText, { runId: 'r1' }), signal));
    await withSignal(again, signal);
    await session.session.result('r1', { signal }).catch((error: unknown) => {
      if (signal.aborted) throw error;
    });
    await persist(() => session.session.waitForIdle({ signal }), signal);
    return await check(each, session, accepted, undisturbed);
  } catch (error) {
    return [{ kind: signal.aborted ? 'hung' : 'other', text: `${error}` }];
  }
}

/** Calls until it succeeds: a server that says no while tasks of a dead worker run out is asked again. */
async function persist(call: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await call();
      return;
    } catch {
      await delay(100, undefined, { signal });
    }
  }
}

async function withSignal(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  const end = new AbortController();
  const late = delay(endTimeoutMs, undefined, { signal: AbortSignal.any([signal, end.signal]) });
  await Promise.race([work, late]).finally(() => {
    end.abort();
    late.catch(() => undefined);
  });
}

/** I9: what a frozen worker writes when it wakes up, nobody reads: the log stays as it is. */
async function checkZombies(
  standing: readonly Standing[],
  results: readonly CaseResult[],
  wake: () => Promise<void>,
): Promise<void> {
  const lengths = await Promise.all(standing.map(({ session }) => lengthOf(session)));
  for (const { session } of standing) release(session);
  await wake();
  for (const [index, { each, session }] of standing.entries()) {
    const wrote = (await lengthOf(session)) - (lengths[index] ?? 0);
    const problems = results[index]?.problems ?? [];
    if (wrote > 0) problems.push({ kind: 'twice', text: `The frozen worker wrote ${wrote} records` });
    problems.push(...checkEntries(session));
    const verified = await session.store.verify(session.sessionId);
    if (!verified.ok) problems.push({ kind: 'other', text: `${each.name}: the chain is broken at ${verified.offset}` });
  }
}

async function lengthOf({ store, sessionId }: FaultSession): Promise<number> {
  return (await store.readSession(sessionId))?.length ?? 0;
}

import { fileURLToPath } from 'node:url';
import { type InjectedSinks, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { inputDigest } from '../../activities/input-digest.ts';
import { EverturnError, errorText, isEverturnError } from '../../common/errors.ts';
import { openStore } from '../../store/index.ts';
import { dataConverterOf, payloadConverterPath } from '../../temporal/data-converter.ts';
import { bundleWorkflows } from '../../worker/bundle.ts';
import { compareEffects } from './compare.ts';
import { checkHistory, recordedEffects } from './history.ts';
import type { ReplaySinks } from './interceptor.ts';
import { toProto } from './proto.ts';
import type { ReplayOptions, ReplayResult, ScheduledEffect, SessionHistory } from './types.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const interceptor = fileURLToPath(new URL(`./interceptor.${extension}`, import.meta.url));

/** See `replayHistories`. */
export async function runReplays(
  histories: Readonly<Record<string, SessionHistory>>,
  options: ReplayOptions,
): Promise<ReplayResult[]> {
  const { workflowsPath } = options;
  const bundle = await bundleWorkflows(workflowsPath === undefined ? {} : { workflowsPath }, [interceptor]);
  const store = typeof options.store === 'string' ? await openStore({ path: options.store }) : options.store;
  const dataConverter = store === undefined ? { payloadConverterPath } : dataConverterOf(store);
  try {
    const results: ReplayResult[] = [];
    for (const [name, history] of Object.entries(histories)) {
      const error = await replay(name, history, { bundle, dataConverter, hasStore: store !== undefined });
      results.push(error === undefined ? { name } : { name, error });
    }
    return results;
  } finally {
    if (typeof options.store === 'string') await store?.close();
  }
}

interface Ground {
  bundle: { code: string };
  dataConverter: Partial<ReturnType<typeof dataConverterOf>>;
  hasStore: boolean;
}

async function replay(
  name: string,
  history: SessionHistory,
  { bundle, dataConverter, hasStore }: Ground,
): Promise<EverturnError | undefined> {
  const replayed: ScheduledEffect[] = [];
  let failure: unknown;
  try {
    const known = checkHistory(history, hasStore);
    const sinks: InjectedSinks<ReplaySinks> = { everturnReplay: { scheduled: { fn: note, callDuringReplay: true } } };
    function note(_info: unknown, seq: number, effect: string, local: boolean, input: unknown): void {
      replayed.push({ seq, effect, input, ...(local ? { digest: inputDigest(input) } : {}) });
    }
    await Worker.runReplayHistory(
      { workflowBundle: bundle, dataConverter, sinks, replayName: name },
      toProto(history),
      name,
    ).catch((error: unknown) => {
      failure = error;
    });
    const recorded = await recordedEffects(known, dataConverter.payloadCodecs ?? []);
    // An input that differs says more than the command that came of it.
    return compareEffects(recorded, replayed) ?? (failure === undefined ? undefined : toReplayError(failure));
  } catch (error) {
    if (isEverturnError(error)) return error;
    throw error;
  }
}

function toReplayError(failure: unknown): EverturnError {
  if (failure instanceof DeterminismViolationError) {
    return new EverturnError('policy_changed', `The workflow would go another way: ${errorText(failure)}`, {
      cause: failure,
    });
  }
  return new EverturnError('internal', `The history could not be replayed: ${errorText(failure)}`, { cause: failure });
}

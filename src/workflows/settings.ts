import { condition, defineUpdate, setHandler } from '@temporalio/workflow';
import type { NewEntry, ThinkingLevel } from '../common/entries.ts';
import { EverturnError, toErrorInfo } from '../common/errors.ts';
import { modelRefSchema, type QueueMode, queueModes, thinkingLevelSchema, updateNames } from '../common/signals.ts';
import { quick } from './activities.ts';
import { append, takeRecords } from './append.ts';
import { errorInfoOf, failureOf, refusing } from './failures.ts';
import { nextNumber, openedOf, type SessionState } from './state.ts';

/** Changes of model, thinking level, tools and queue modes: they count from the next request or drain on. */
export function installSettingHandlers(state: SessionState): void {
  setHandler(defineUpdate<void, [string]>(updateNames.setModel), (model) => setModel(state, model), {
    validator: (model) => refusing(() => expectValid(modelRefSchema.safeParse(model), 'setModel')),
  });
  setHandler(
    defineUpdate<void, [ThinkingLevel]>(updateNames.setThinkingLevel),
    (level) => setThinkingLevel(state, level),
    {
      validator: (level) => refusing(() => expectValid(thinkingLevelSchema.safeParse(level), 'setThinkingLevel')),
    },
  );
  setHandler(
    defineUpdate<void, [string[] | null]>(updateNames.setActiveTools),
    (names) => setActiveTools(state, names),
    {
      validator: (names) => refusing(() => checkNames(names)),
    },
  );
  setHandler(
    defineUpdate<void, ['steer' | 'followUp', QueueMode]>(updateNames.setQueueMode),
    (queue, mode) => setQueueMode(state, queue, mode),
    {
      validator: (queue, mode) => refusing(() => checkQueueMode(queue, mode)),
    },
  );
}

/** @throws `unknown_model` or `no_api_key` to the caller: a model that cannot be used is never set. */
async function setModel(state: SessionState, model: string): Promise<void> {
  await opened(state);
  try {
    await quick.checkModel({ model });
  } catch (error) {
    throw failureOf(errorInfoOf(error));
  }
  state.model = model;
  const slash = model.indexOf('/');
  await record(
    state,
    { type: 'model_change', provider: model.slice(0, slash), modelId: model.slice(slash + 1) },
    { model },
  );
}

async function setThinkingLevel(state: SessionState, thinkingLevel: ThinkingLevel): Promise<void> {
  await opened(state);
  state.thinkingLevel = thinkingLevel;
  await record(state, { type: 'thinking_level_change', thinkingLevel }, { thinkingLevel });
}

async function setActiveTools(state: SessionState, names: string[] | null): Promise<void> {
  await opened(state);
  const known = openedOf(state).manifest.tools.map((tool) => tool.name);
  const unknown = names?.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw failureOf(
      toErrorInfo(
        new EverturnError(
          'unknown_tool',
          `There is no tool "${unknown}". The agent has: ${known.join(', ') || 'none'}.`,
        ),
      ),
    );
  }
  state.activeTools = names;
  await record(state, { type: 'active_tools_change', activeToolNames: names ?? known }, { activeTools: names });
}

async function setQueueMode(state: SessionState, queue: 'steer' | 'followUp', mode: QueueMode): Promise<void> {
  await opened(state);
  if (queue === 'steer') state.queues.steeringMode = mode;
  else state.queues.followUpMode = mode;
}

async function opened(state: SessionState): Promise<void> {
  await condition(() => state.opened !== undefined || state.failure !== undefined);
  if (state.failure !== undefined) throw failureOf(state.failure);
}

type Change = NewEntry extends infer Entry ? (Entry extends NewEntry ? Omit<Entry, 'id' | 'timestamp'> : never) : never;

/** In a run the entry waits for the turn border; the setting itself is stored at once. */
async function record(
  state: SessionState,
  change: Change,
  settings: { model?: string; thinkingLevel?: ThinkingLevel; activeTools?: string[] | null },
): Promise<void> {
  const id = `set-${state.chain}-${nextNumber(state)}`;
  if (state.run?.sessionSettings) Object.assign(state.run.sessionSettings, settings);
  state.entries.push({ ...change, id, timestamp: new Date().toISOString() } as NewEntry);
  // After `workflow reset` this may be the write that takes the session over: the run that goes on must be known then.
  const { run } = state;
  await append(
    state,
    run === null ? { records: takeRecords(state), settings } : { runId: run.runId, records: [], settings },
  );
}

function expectValid(
  parsed: { success: boolean; error?: { issues: { message: string }[] } | undefined },
  update: string,
): void {
  if (!parsed.success) throw new EverturnError('invalid_argument', `${update}: ${parsed.error?.issues[0]?.message}`);
}

function checkNames(names: unknown): void {
  const valid = names === null || (Array.isArray(names) && names.every((name) => typeof name === 'string'));
  if (!valid) throw new EverturnError('invalid_argument', 'setActiveTools: send a list of tool names, or null for all');
}

function checkQueueMode(queue: unknown, mode: unknown): void {
  if ((queue !== 'steer' && queue !== 'followUp') || !queueModes.includes(mode as QueueMode)) {
    throw new EverturnError(
      'invalid_argument',
      `setQueueMode: send "steer" or "followUp", and one of ${queueModes.join(', ')}`,
    );
  }
}

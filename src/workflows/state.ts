import type { CancellationScope } from '@temporalio/workflow';
import type { ContextBase, OpenSessionResult } from '../common/effects.ts';
import type { NewEntry, ThinkingLevel } from '../common/entries.ts';
import type { ErrorInfo } from '../common/errors.ts';
import type { NewRecord, QueuedMessage, RunStatus } from '../common/events.ts';
import type { PromptAnswer, QueueMode, SessionInput } from '../common/signals.ts';
import { noUsage, type UsageTotals } from '../common/usage.ts';

/** `held`: it was there when a run decided to stop, so it waits for the next run and opens none itself. */
export interface QueueItem extends QueuedMessage {
  held: boolean;
}

export interface Queues {
  steer: QueueItem[];
  followUp: QueueItem[];
  nextTurn: QueueItem[];
  steeringMode: QueueMode;
  followUpMode: QueueMode;
}

/** A run that is accepted, and not begun. */
export interface RunRequest {
  runId: string;
  /** Tells this request from another with the same run id, in the store: the other is a repetition. */
  token: string;
  messages: QueuedMessage[];
  /** Aborted before it began: it still gets its place in the transcript. */
  aborted?: boolean;
}

export interface Settings {
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[] | null;
}

/** A run in progress. */
export interface RunState {
  runId: string;
  token: string;
  /** Number of the turn that is going on, or comes next. From 0. */
  turn: number;
  /** Messages that the next turn injects. */
  pending: QueuedMessage[];
  /** True from an abort signal on, and from a reply that an abort record ended. */
  aborting: boolean;
  /** What the abort took out of the queues. */
  cleared: { steer: QueuedMessage[]; followUp: QueuedMessage[] };
  /** True once the run has decided to end: a prompt that comes now opens the next one. */
  closing: boolean;
  /** Replies in a row that hit the output limit inside a tool call. */
  lengthStops: number;
  queueHookPolls: number;
  /** The model that the turn in progress asks, whatever is set meanwhile. */
  asking: string | null;
  /** True: the next model effect asks getSteeringMessages as it begins. */
  poll: boolean;
  /** Put in place of the transcript by a policy. */
  base: ContextBase | null;
  /** Digest of the system prompt, when before_agent_start changed it. */
  systemPrompt: string | null;
  /** The session's own settings, from the first time on that a policy of this run changed them. */
  sessionSettings: Settings | null;
  /** True once the gate before the run was passed and steering was drained. */
  started: boolean;
}

/** The part of a session that continue-as-new hands on: plain data, all that is not in the store. */
export interface Carry {
  queues: Queues;
  waiting: RunRequest[];
  run: RunState | null;
  /** The last runs that ended here, newest last. */
  ended: { runId: string; status: RunStatus }[];
  /** The last prompts that joined a run instead of opening one, by the run id that they came with: sent again, they are known. */
  joined: { promptId: string; answer: PromptAnswer }[];
  /** Events that may be appended at any time. */
  events: NewRecord[];
  /** Entries (changes of settings) that must not stand between a message and its results: appended at a turn border. */
  entries: NewEntry[];
  /** Queued messages whose text the log does not have yet. */
  unlogged: QueuedMessage[];
  /** How many keys of records were given so far. */
  numbered: number;
  /** How many messages were accepted by signal so far. */
  accepted: number;
  /** Settings as they are now, which a policy may have changed for its run alone. */
  settings: Settings | null;
}

export interface SessionState extends Carry {
  input: SessionInput;
  /** See `chainTag`. */
  chain: string;
  opened: OpenSessionResult | undefined;
  /** Set when the session could not be opened: every waiting prompt is told. */
  failure: ErrorInfo | undefined;
  model: string;
  thinkingLevel: ThinkingLevel;
  activeTools: string[] | null;
  leaf: string | null;
  /** Cancelled by abort. */
  runScope: CancellationScope | undefined;
  counts: { runs: number; turns: number; effects: number; rejectedSignals: number; usage: UsageTotals };
}

const keptEnded = 20;

export function newState(input: SessionInput, chain: string): SessionState {
  const carry = input.carry as Carry | undefined;
  return {
    queues: { steer: [], followUp: [], nextTurn: [], steeringMode: 'one-at-a-time', followUpMode: 'one-at-a-time' },
    waiting: [],
    run: null,
    ended: [],
    joined: [],
    events: [],
    entries: [],
    unlogged: [],
    numbered: 0,
    accepted: 0,
    settings: null,
    ...carry,
    input,
    chain,
    opened: undefined,
    failure: undefined,
    model: '',
    thinkingLevel: 'off',
    activeTools: null,
    leaf: null,
    runScope: undefined,
    counts: { runs: 0, turns: 0, effects: 0, rejectedSignals: 0, usage: noUsage },
  };
}

export function carryOf(state: SessionState): Carry {
  const { queues, waiting, run, events, entries, unlogged, numbered, accepted, model, thinkingLevel, activeTools } =
    state;
  const settings = { model, thinkingLevel, activeTools };
  const ended = state.ended.slice(-keptEnded);
  const joined = state.joined.slice(-keptEnded);
  return { queues, waiting, run, ended, joined, events, entries, unlogged, numbered, accepted, settings };
}

/** The store's word on the session counts; but settings that a policy changed are the workflow's own. */
export function adoptOpened(state: SessionState, opened: OpenSessionResult): void {
  state.opened = opened;
  const { model, thinkingLevel, activeTools } = state.settings ?? opened;
  state.model = model;
  state.thinkingLevel = thinkingLevel;
  state.activeTools = activeTools;
  state.leaf = opened.leaf;
  if (state.input.carry === undefined) {
    state.queues.steeringMode = opened.manifest.steeringMode;
    state.queues.followUpMode = opened.manifest.followUpMode;
  }
}

export function newRun(request: RunRequest): RunState {
  return {
    runId: request.runId,
    token: request.token,
    turn: 0,
    pending: request.messages,
    aborting: false,
    cleared: { steer: [], followUp: [] },
    closing: false,
    lengthStops: 0,
    queueHookPolls: 0,
    poll: false,
    asking: null,
    base: null,
    systemPrompt: null,
    sessionSettings: null,
    started: false,
  };
}

export function openedOf(state: SessionState): OpenSessionResult {
  if (state.opened === undefined) throw new Error('the session is not open yet');
  return state.opened;
}

/** Keys are given in the order of history: a replay gives the same. */
export function nextNumber(state: SessionState): number {
  state.numbered += 1;
  return state.numbered;
}

/** Messages are numbered by themselves, so that after a reset, too, the same message gets the same id. */
export function nextMessage(state: SessionState): number {
  state.accepted += 1;
  return state.accepted;
}

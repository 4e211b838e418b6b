import { setTimeout as delay } from 'node:timers/promises';
import { uuidv7 } from '@earendil-works/pi-ai';
import { WithStartWorkflowOperation } from '@temporalio/client';
import type { ThinkingLevel } from '../common/entries.ts';
import { EverturnError, isEverturnError } from '../common/errors.ts';
import type { QueuedMessage, SessionEvent } from '../common/events.ts';
import { type ImageContent, type MessageInput, parseIncoming, userMessage } from '../common/messages.ts';
import {
  idSchema,
  type OnBusy,
  type PromptAnswer,
  type PromptByName,
  promptInputSchema,
  type QueueMode,
  queryNames,
  type SessionInput,
  type SessionQueues,
  type SessionStatus,
  signalNames,
  updateNames,
  workflowType,
} from '../common/signals.ts';
import type { EffectCounts, SessionRow } from '../store/types.ts';
import type { ClientContext } from './agent-client.ts';
import { type EventsOptions, readEvents } from './events.ts';
import { isNotFound, isTimeout, toClientError } from './failures.ts';
import { type RunProbe, type RunResult, toRunResult, waitForRun } from './run-result.ts';

export type SessionOptions = Omit<SessionInput, 'carry'>;

export interface PromptOptions {
  images?: readonly ImageContent[];
  /** Makes the prompt safe to repeat: the same id gives the same run. Default: a new UUID. */
  runId?: string;
  /** What to do while a run is going on. Default: reject with code `busy`. */
  onBusy?: OnBusy;
}

export interface SessionStats extends EffectCounts {
  turns: number;
  usage: SessionRow['usage'];
  /** Of the current or last workflow run. */
  historyEvents: number;
  historyBytes: number;
}

/** Milliseconds until a prompt is sent again to a session whose workflow does not know yet that its run has ended. */
const endedRunPauseMs = 50;

type SessionWorkflow = (input: SessionInput) => Promise<void>;

/** One session. Methods that need its workflow start it when it is not up. */
export class SessionHandle {
  readonly sessionId: string;
  private readonly context: ClientContext;
  private readonly options: SessionOptions;

  constructor(context: ClientContext, sessionId: string, options: SessionOptions) {
    this.context = context;
    this.sessionId = sessionId;
    this.options = options;
  }

  /**
   * Opens a run, or does what `onBusy` says; the answer tells what became of the message. It is durable when this returns.
   * @throws EverturnError `busy`, `invalid_argument`, `message_too_large`, `unknown_agent`, `unknown_model`, `no_api_key`,
   * `no_worker`, `temporal_unavailable`
   */
  async prompt(message: MessageInput, options: PromptOptions = {}): Promise<PromptAnswer> {
    const content = withImages(message, options.images ?? []);
    parseIncoming(content, Date.now());
    return this.sendPrompt(content, options);
  }

  private async sendPrompt(message: MessageInput | PromptByName, options: PromptOptions): Promise<PromptAnswer> {
    const { runId = uuidv7(), onBusy = 'reject' } = options;
    const input = promptInputSchema.safeParse({ runId, message, onBusy, agent: this.options.agent });
    if (!input.success) {
      const issue = input.error.issues[0];
      throw new EverturnError('invalid_argument', `prompt: ${issue?.path.join('.')}: ${issue?.message}`);
    }
    const { temporal, answerTimeoutMs } = this.context;
    const send = () =>
      this.answered(() =>
        temporal.workflow.executeUpdateWithStart<SessionWorkflow, PromptAnswer, [unknown]>(updateNames.prompt, {
          // No update id of ours: Temporal would repeat the failure of a session that could not be opened then, and can now.
          args: [input.data],
          startWorkflowOperation: new WithStartWorkflowOperation<SessionWorkflow>(workflowType, {
            ...this.startOptions(),
            workflowIdConflictPolicy: 'USE_EXISTING',
          }),
        }),
      );
    for (const deadline = Date.now() + answerTimeoutMs; ; ) {
      try {
        return await send();
      } catch (error) {
        if (Date.now() > deadline || !(await this.isBusyWithEndedRun(error))) throw error;
        await delay(endedRunPauseMs);
      }
    }
  }

  /** A worker that died between the end of a run and its report leaves the run to another, which sees the end shortly. */
  private async isBusyWithEndedRun(error: unknown): Promise<boolean> {
    if (!isEverturnError(error, 'busy')) return false;
    const { runId } = error.details as { runId: string };
    const run = await this.context.store.readRun(this.sessionId, runId);
    return run !== undefined && run.status !== 'open';
  }

  /** Prompts with a skill of the agent, and instructions behind it. @throws EverturnError `invalid_argument` for an unknown one */
  async skill(name: string, instructions?: string, options: Omit<PromptOptions, 'images'> = {}): Promise<PromptAnswer> {
    return this.sendPrompt({ skill: name, ...(instructions === undefined ? {} : { instructions }) }, options);
  }

  /** Prompts with a template of the agent, its placeholders filled. @throws EverturnError `invalid_argument` for an unknown one */
  async promptFromTemplate(
    name: string,
    args: readonly string[] = [],
    options: Omit<PromptOptions, 'images'> = {},
  ): Promise<PromptAnswer> {
    return this.sendPrompt({ template: name, args: [...args] }, options);
  }

  /** Prompts and waits for the run's end. */
  async run(message: MessageInput, options: PromptOptions = {}): Promise<RunResult> {
    const { runId } = await this.prompt(message, options);
    return this.result(runId);
  }

  /** Injects a message after the current turn. To an idle session it opens a run. Durable when this returns. */
  async steer(message: MessageInput, options: Pick<PromptOptions, 'images'> = {}): Promise<void> {
    await this.send(signalNames.steer, message, options.images);
  }

  /** Queues a message for when the run would stop. To an idle session it opens a run. Durable when this returns. */
  async followUp(message: MessageInput, options: Pick<PromptOptions, 'images'> = {}): Promise<void> {
    await this.send(signalNames.followUp, message, options.images);
  }

  /** Keeps a message for the next prompt, before whose own message it will stand. Durable when this returns. */
  async nextTurn(message: MessageInput, options: Pick<PromptOptions, 'images'> = {}): Promise<void> {
    await this.send(signalNames.nextTurn, message, options.images);
  }

  /**
   * Aborts a run (default: the one that is going on) and waits for its end. A control record reaches the provider and the
   * tools at once, a signal makes it durable. Returns what was taken out of the queues, also of an idle session.
   */
  async abort(
    runId?: string,
  ): Promise<{ runId?: string; clearedSteer: QueuedMessage[]; clearedFollowUp: QueuedMessage[] }> {
    const target = runId ?? (await this.status()).runId;
    if (target === undefined) return this.clearQueues();
    await this.sendAbort(target);
    const key = { sessionId: this.sessionId, runId: target };
    const run = await waitForRun(this.context, key, () => this.probe(target), undefined);
    const cleared =
      run.lastOffset === undefined ? undefined : await this.findAbort(Math.max(0, run.lastOffset - 5), target);
    return { runId: target, ...(cleared ?? { clearedSteer: [], clearedFollowUp: [] }) };
  }

  /** What an idle session has queued is taken out too, as in pi. */
  private async clearQueues(): Promise<{ clearedSteer: QueuedMessage[]; clearedFollowUp: QueuedMessage[] }> {
    const { store, answerTimeoutMs } = this.context;
    const from = (await store.readSession(this.sessionId))?.length ?? 0;
    try {
      const { steer, followUp } = await this.queues();
      if (steer.length + followUp.length === 0) return { clearedSteer: [], clearedFollowUp: [] };
      await this.called(() => this.handle().signal(signalNames.abort));
    } catch (error) {
      if (!isEverturnError(error, 'not_found')) throw error;
      return { clearedSteer: [], clearedFollowUp: [] };
    }
    for (const deadline = Date.now() + answerTimeoutMs; Date.now() < deadline; await delay(20)) {
      const cleared = await this.findAbort(from);
      if (cleared !== undefined) return cleared;
    }
    throw new EverturnError('no_worker', 'No worker carried out the abort in time. Start one; the abort is not lost.', {
      retryable: true,
    });
  }

  private async findAbort(
    from: number,
    runId: string | null = null,
  ): Promise<{ clearedSteer: QueuedMessage[]; clearedFollowUp: QueuedMessage[] } | undefined> {
    const records = await this.context.store.readLog(this.sessionId, from, 100);
    for (const { runId: of, body } of records) {
      if (of !== runId || body.kind !== 'event' || body.event.type !== 'abort') continue;
      const { clearedSteer, clearedFollowUp } = body.event;
      return { clearedSteer, clearedFollowUp };
    }
    return undefined;
  }

  /** Asks for the abort of a run without waiting for its end. */
  async sendAbort(runId: string): Promise<void> {
    await this.context.store.requestAbort(this.sessionId, runId);
    try {
      await this.called(() => this.handle().signal(signalNames.abort, { runId }));
    } catch (error) {
      // Its workflow has completed: the run is over.
      if (!(error instanceof EverturnError && error.code === 'not_found')) throw error;
    }
  }

  /** Waits for the end of a run. @throws EverturnError what broke it (`hook`, `policy` …), `session_closed` */
  async result(runId: string, options: { signal?: AbortSignal } = {}): Promise<RunResult> {
    if (!idSchema.safeParse(runId).success)
      throw new EverturnError('invalid_argument', `result: "${runId}" is no run id`);
    const { store } = this.context;
    const key = { sessionId: this.sessionId, runId };
    return toRunResult(store, await waitForRun(this.context, key, () => this.probe(runId), options.signal));
  }

  /** Resolves when no run is going on or waiting to begin. */
  async waitForIdle(options: { signal?: AbortSignal } = {}): Promise<void> {
    for (let pause = 20; (await this.status()).phase !== 'idle'; pause = Math.min(pause * 1.5, 250)) {
      options.signal?.throwIfAborted();
      await delay(pause);
    }
  }

  /** From the next request on. @throws EverturnError `unknown_model`, `no_api_key` */
  async setModel(model: string): Promise<void> {
    await this.update(updateNames.setModel, [model]);
  }

  async setThinkingLevel(level: ThinkingLevel): Promise<void> {
    await this.update(updateNames.setThinkingLevel, [level]);
  }

  /** null: all tools of the agent. @throws EverturnError `unknown_tool` */
  async setActiveTools(names: readonly string[] | null): Promise<void> {
    await this.update(updateNames.setActiveTools, [names]);
  }

  /** From the next drain on, also for messages that wait already. Lasts as long as the workflow is up. */
  async setQueueMode(queue: 'steer' | 'followUp', mode: QueueMode): Promise<void> {
    await this.update(updateNames.setQueueMode, [queue, mode]);
  }

  /** Of the workflow when it is up, else from the store. */
  async status(): Promise<SessionStatus> {
    try {
      return await this.answered(() => this.handle().query<SessionStatus>(queryNames.status));
    } catch (error) {
      if (!(error instanceof EverturnError && error.code === 'not_found')) throw error;
      const session = await this.context.store.readSession(this.sessionId);
      if (session === undefined) throw this.unknown();
      const { model, thinkingLevel, activeTools, epoch } = session;
      return { phase: 'idle', waiting: [], model, thinkingLevel, activeTools, epoch };
    }
  }

  /** What waits in the queues of the workflow. */
  async queues(): Promise<SessionQueues> {
    return this.answered(() => this.handle().query<SessionQueues>(queryNames.queues));
  }

  /** Events of the session from an offset on, then live. */
  events(options: EventsOptions = {}): AsyncGenerator<SessionEvent> {
    return readEvents(this.context.store, this.sessionId, options);
  }

  /**
   * Calls a listener for every event from now on (or from an offset on), one after the other. Returns what ends that. A
   * listener that throws ends its own subscription and is told to `onError`; the run does not notice.
   */
  subscribe(
    listener: (event: SessionEvent) => void | Promise<void>,
    options: { from?: number; onError?: (error: unknown) => void } = {},
  ): () => void {
    const ended = new AbortController();
    const {
      onError = (error: unknown) =>
        process.emitWarning(`A subscriber of session ${this.sessionId} threw: ${String(error)}`),
    } = options;
    const follow = async () => {
      const from = options.from ?? (await this.context.store.readSession(this.sessionId))?.length ?? 0;
      for await (const event of this.events({ from, signal: ended.signal })) await listener(event);
    };
    follow().catch(onError);
    return () => ended.abort();
  }

  /** What was durable: effects and attempts, of one run or of all, and the size of the workflow's history. */
  async stats(runId?: string): Promise<SessionStats> {
    const { store } = this.context;
    const session = await store.readSession(this.sessionId);
    if (session === undefined) throw this.unknown();
    const runs =
      runId === undefined ? await store.listRuns(this.sessionId) : [await store.readRun(this.sessionId, runId)];
    const [counts, history] = await Promise.all([store.countEffects(this.sessionId, runId), this.history()]);
    const turns = runs.reduce((sum, run) => sum + (run?.turns ?? 0), 0);
    const usage = runId === undefined ? session.usage : (runs[0]?.usage ?? session.usage);
    return { ...counts, turns, usage, ...history };
  }

  private async send(signal: string, message: MessageInput, images: readonly ImageContent[] = []): Promise<void> {
    const content = withImages(message, images);
    parseIncoming(content, Date.now());
    await this.called(() =>
      this.context.temporal.workflow.signalWithStart<SessionWorkflow, [unknown]>(workflowType, {
        ...this.startOptions(),
        signal,
        signalArgs: [content],
      }),
    );
  }

  private async update(name: string, args: unknown[]): Promise<void> {
    await this.answered(() =>
      this.context.temporal.workflow.executeUpdateWithStart<SessionWorkflow, void, unknown[]>(name, {
        args,
        startWorkflowOperation: new WithStartWorkflowOperation<SessionWorkflow>(workflowType, {
          ...this.startOptions(),
          workflowIdConflictPolicy: 'USE_EXISTING',
        }),
      }),
    );
  }

  private startOptions() {
    return {
      workflowId: this.sessionId,
      taskQueue: this.context.taskQueue,
      args: [this.options as SessionInput] as [SessionInput],
      workflowTaskTimeout: '5s' as const,
    };
  }

  private handle() {
    return this.context.temporal.workflow.getHandle<SessionWorkflow>(this.sessionId);
  }

  /** A call that needs a worker's answer: it has a deadline. */
  private answered<T>(call: () => Promise<T>): Promise<T> {
    const { temporal, answerTimeoutMs } = this.context;
    return this.called(() => temporal.withDeadline(Date.now() + answerTimeoutMs, call));
  }

  private async called<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      const { address, taskQueue } = this.context;
      throw toClientError(error, { address, taskQueue, sessionId: this.sessionId });
    }
  }

  /** Asks the workflow itself only about a run that the store does not have yet. */
  private async probe(runId: string): Promise<RunProbe> {
    if (!(await this.isAlive())) return 'closed';
    if ((await this.context.store.readRun(this.sessionId, runId)) !== undefined) return 'expected';
    try {
      const status = await this.status();
      const known = [status.runId, status.lastRun?.runId, ...status.waiting].includes(runId);
      return known || status.phase === 'opening' ? 'expected' : 'unknown';
    } catch (error) {
      // Without a worker nobody can say: it is waited for.
      if (isEverturnError(error) && error.retryable) return 'expected';
      throw error;
    }
  }

  private async isAlive(): Promise<boolean> {
    try {
      return (await this.handle().describe()).status.name === 'RUNNING';
    } catch (error) {
      if (isNotFound(error)) return false;
      // A server that does not answer now says nothing about the session.
      if (isTimeout(error)) return true;
      return toClientError(error, { ...this.context, sessionId: this.sessionId }).code === 'temporal_unavailable';
    }
  }

  private async history(): Promise<{ historyEvents: number; historyBytes: number }> {
    try {
      const { historyLength, historySize } = await this.handle().describe();
      return { historyEvents: historyLength, historyBytes: historySize ?? 0 };
    } catch (error) {
      if (isNotFound(error)) return { historyEvents: 0, historyBytes: 0 };
      throw toClientError(error, { ...this.context, sessionId: this.sessionId });
    }
  }

  private unknown(): EverturnError {
    return new EverturnError('not_found', `There is no session "${this.sessionId}". A prompt makes it.`);
  }
}

function withImages(message: MessageInput, images: readonly ImageContent[]): MessageInput {
  if (images.length === 0) return message;
  if (typeof message !== 'string')
    throw new EverturnError('invalid_argument', 'images go with a text; put them into the content of a message');
  const { timestamp: _, ...rest } = userMessage(message, images, 0);
  return rest;
}

import { QueryNotRegisteredError } from '@temporalio/client';
import { EventAssembler } from '../../src/client/event-assembler.ts';
import type { SessionHandle } from '../../src/client/index.ts';
import { errorText } from '../../src/common/errors.ts';
import { textOf } from '../../src/common/messages.ts';
import { signalNames } from '../../src/common/signals.ts';
import { currentSignal } from '../../src/hooks/current-signal.ts';
import { readWholeLog } from '../support/transcript.ts';
import { seeEverturnEvent } from './everturn-events.ts';
import type { EverturnStage } from './everturn-stage.ts';
import { image, templateArgs, text } from './moves.ts';
import { plain } from './normal.ts';
import type { Observation, RunEnd } from './observation.ts';
import { fired, Play } from './play.ts';
import type { PolicyCall } from './policy-script.ts';
import { type Action, agentName, callId, type RunScript, type Scenario } from './scenario.ts';

export interface EverturnObservation extends Observation {
  /** What was really exercised. */
  features: string[];
  /** True: Temporal tried an effect again, since this machine was too slow. The scenario says nothing then. */
  disturbed: boolean;
}

/** A scenario that hangs is a failure, not a wait. */
const runTimeoutMs = 90_000;
const maxDeltas = 10_000;

/** One scenario in one session. */
export class EverturnPlay {
  readonly script: Play;
  private readonly stage: EverturnStage;
  private readonly scenario: Scenario;
  private readonly session: SessionHandle;
  private readonly sessionId: string;
  private queueUpdates = 0;
  private changed = Promise.withResolvers<void>();
  private closed = Promise.withResolvers<void>();

  constructor(stage: EverturnStage, scenario: Scenario, sessionId: string) {
    this.stage = stage;
    this.scenario = scenario;
    this.sessionId = sessionId;
    this.session = stage.client.session(sessionId, { agent: agentName(scenario.setup), thinkingLevel: scenario.level });
    this.script = new Play(scenario, (action, signal) => this.act(action, signal ?? currentSignal()));
  }

  queuesLogged(): void {
    this.queueUpdates += 1;
    this.changed.resolve();
    this.changed = Promise.withResolvers();
  }

  runClosed(): void {
    this.closed.resolve();
  }

  /** Entries are named by run and turn, as calls of the script are. */
  callEnded(entryId: string, index: number): void {
    const [run = '', turn = ''] = entryId.split('/');
    this.script.ended(callId(Number(run.slice('run'.length)), Number(turn), index));
  }

  async play(): Promise<EverturnObservation> {
    const { script, stage, sessionId } = this;
    const ends: RunEnd[] = [];
    for (const [index, run] of this.scenario.runs.entries()) {
      if (index > 0 && run.before.length > 0) await this.session.waitForIdle();
      await script.perform('idle', run.before);
      script.beginRun(index);
      ends.push(await this.runOnce(run, `run${index}`));
    }
    const handle = stage.temporal.workflow.getHandle(sessionId);
    const tasks = await this.workflowTasks();
    const policyCalls = tasks.disturbed ? [] : await this.policyCalls();
    for (const text of tasks.failures) ends.push({ status: 'a workflow task failed', thrown: text });
    await handle.terminate('the scenario is over').catch(() => undefined);
    const log = await readWholeLog(stage.store, sessionId);
    const deltas = await stage.store.readDeltas(sessionId, 0, maxDeltas);
    const events = [...new EventAssembler().push(log, deltas)].flatMap((event) => seeEverturnEvent(event) ?? []);
    const { effects, attempts } = await stage.store.countEffects(sessionId);
    return {
      transcript: await this.transcript(),
      requests: script.requests,
      calls: script.calls,
      events,
      ends,
      policyCalls: policyCalls.map(plain),
      features: [...script.features],
      disturbed: tasks.disturbed || attempts > effects,
    };
  }

  private async runOnce({ prompt }: RunScript, runId: string): Promise<RunEnd> {
    this.closed = Promise.withResolvers();
    const deadline = AbortSignal.timeout(runTimeoutMs);
    try {
      await this.open(prompt, runId);
      // Sixteen sessions that all look into the store for their end would slow each other down.
      await Promise.race([this.closed.promise, fired(deadline)]);
      const { status } = await this.session.result(runId, { signal: deadline });
      return { status };
    } catch (error) {
      return { status: 'rejected', thrown: errorText(error) };
    }
  }

  private open({ text: instructions, image: withImage, by }: RunScript['prompt'], runId: string): Promise<unknown> {
    if (by !== 'text') this.script.mark(`prompt by ${by}`);
    if (by === 'skill') return this.session.skill('helper', instructions, { runId });
    if (by === 'template') return this.session.promptFromTemplate('ask', templateArgs(instructions), { runId });
    return this.session.prompt(instructions, { runId, ...(withImage ? { images: [image] } : {}) });
  }

  private async act(action: Action, signal: AbortSignal | undefined): Promise<void> {
    switch (action.do) {
      case 'steer':
      case 'followUp':
      case 'nextTurn': {
        const before = this.queueUpdates;
        await this.session[action.do](
          action.image ? { role: 'user', content: [...text(action.text), image] } : action.text,
        );
        await this.untilQueuesLogged(before);
        const waiting = (await this.session.queues())[action.do];
        if (!waiting.some((message) => textOf(message as { content?: unknown }) === action.text))
          throw new Error(`"${action.text}" is not in the queue ${action.do}`);
        return;
      }
      case 'abort':
        return this.abort(signal);
      case 'setModel':
        return this.session.setModel(action.model);
      case 'setThinkingLevel':
        return this.session.setThinkingLevel(action.level);
      case 'setActiveTools':
        return this.session.setActiveTools(action.tools);
      case 'setQueueMode':
        return this.session.setQueueMode(action.queue, action.mode);
    }
  }

  /** As `sendAbort`, in steps: the workflow takes the queues first, and then the effect hears of it. */
  private async abort(signal: AbortSignal | undefined): Promise<void> {
    const before = this.queueUpdates;
    const runId = `run${this.script.run}`;
    await this.stage.temporal.workflow.getHandle(this.sessionId).signal(signalNames.abort, { runId });
    await this.untilQueuesLogged(before);
    await this.stage.store.requestAbort(this.sessionId, runId);
    await fired(signal);
  }

  private async untilQueuesLogged(before: number): Promise<void> {
    while (this.queueUpdates === before) await this.changed.promise;
  }

  private async transcript(): Promise<Observation['transcript']> {
    const { store } = this.stage;
    const session = await store.readSession(this.sessionId);
    if (!session?.leaf) return [];
    const { entries } = await store.readPath(this.sessionId, session.leaf);
    return entries.map(({ id: _, parentId: __, ...entry }) => plain(entry) as Observation['transcript'][number]);
  }

  /** A workflow task that fails is a defect, whatever its retry makes of it; one that timed out tells of a busy machine. */
  private async workflowTasks(): Promise<{ failures: string[]; disturbed: boolean }> {
    const { events } = await this.stage.temporal.workflow.getHandle(this.sessionId).fetchHistory();
    const failures = (events ?? []).flatMap(({ workflowTaskFailedEventAttributes: failed }) =>
      failed ? [`${failed.cause}: ${failed.failure?.message}`] : [],
    );
    return { failures, disturbed: (events ?? []).some((event) => event.workflowTaskTimedOutEventAttributes) };
  }

  private async policyCalls(): Promise<PolicyCall[]> {
    const { setup } = this.scenario;
    if (setup.layer === 'harness' || setup.policy === 'none') return [];
    // The query is there from the first call of a policy on.
    const handle = this.stage.temporal.workflow.getHandle(this.sessionId);
    return handle.query<PolicyCall[]>('policyCalls').catch((error: unknown) => {
      if (error instanceof QueryNotRegisteredError) return [];
      throw error;
    });
  }
}

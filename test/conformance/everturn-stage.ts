import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Context } from '@temporalio/activity';
import { Client, Connection } from '@temporalio/client';
import { AgentClient } from '../../src/client/index.ts';
import { openStore, type Store } from '../../src/store/index.ts';
import type { Commit } from '../../src/store/types.ts';
import { dataConverterOf } from '../../src/temporal/data-converter.ts';
import { createWorker } from '../../src/worker/index.ts';
import { playAgent } from './agents.ts';
import { type EverturnObservation, EverturnPlay } from './everturn-play.ts';
import { playProvider } from './model.ts';
import type { Play } from './play.ts';
import { agentName, type Scenario, type Setup } from './scenario.ts';

export interface StageOptions {
  /** Address of the Temporal server. */
  address: string;
  /** The suite's workflow bundle. */
  codePath: string;
}

let stages = 0;

/** One worker and one client in this process, on which any number of scenarios is played at the same time. */
export class EverturnStage {
  readonly client: AgentClient;
  readonly temporal: Client;
  readonly store: Store;
  private readonly plays: Map<string, EverturnPlay>;
  private readonly endings: (() => Promise<unknown>)[];
  private readonly name: string;

  private constructor(
    fields: Pick<EverturnStage, 'client' | 'temporal' | 'store'>,
    plays: Map<string, EverturnPlay>,
    name: string,
    endings: (() => Promise<unknown>)[],
  ) {
    this.client = fields.client;
    this.temporal = fields.temporal;
    this.store = fields.store;
    this.plays = plays;
    this.name = name;
    this.endings = endings;
  }

  /** Its worker has the agents of these scenarios. */
  static async open({ address, codePath }: StageOptions, scenarios: readonly Scenario[]): Promise<EverturnStage> {
    stages += 1;
    const name = `conformance-${process.pid}-${stages}-${Date.now().toString(36)}`;
    const folder = await mkdtemp(join(tmpdir(), 'everturn-test-'));
    const store = await openStore({ path: join(folder, 'store') });
    const plays = new Map<string, EverturnPlay>();
    const current = (): Play => playIn(plays, Context.current().info.workflowExecution?.workflowId ?? '');
    const setups = new Map<string, Setup>(scenarios.map(({ setup }) => [agentName(setup), setup]));
    const worker = await createWorker({
      agents: [...setups.values()].map((setup) => playAgent(setup, current)),
      store: observed(store, plays),
      address,
      taskQueue: name,
      workflowBundle: { codePath },
      providers: [playProvider((sessionId) => playIn(plays, sessionId))],
      // Tools of the script wait for each other, whatever is being aborted.
      graceMs: 60_000,
      maxSessions: 300,
    });
    const running = worker.run();
    const client = await AgentClient.connect({ address, store, taskQueue: name });
    const connection = await Connection.connect({ address });
    const stop = async () => {
      worker.shutdown();
      await running;
    };
    const endings = [
      stop,
      () => client.close(),
      () => connection.close(),
      () => store.close(),
      () => rm(folder, { recursive: true, force: true }),
    ];
    return new EverturnStage(
      { client, temporal: new Client({ connection, dataConverter: dataConverterOf(store) }), store },
      plays,
      name,
      endings,
    );
  }

  async play(scenario: Scenario): Promise<EverturnObservation> {
    const sessionId = `${this.name}-${this.plays.size}`;
    const playing = new EverturnPlay(this, scenario, sessionId);
    this.plays.set(sessionId, playing);
    return playing.play();
  }

  async close(): Promise<void> {
    for (const ending of this.endings) await ending();
  }
}

function playIn(plays: ReadonlyMap<string, EverturnPlay>, sessionId: string): Play {
  const found = plays.get(sessionId);
  if (found === undefined) throw new Error(`no scenario is played in session ${sessionId}`);
  return found.script;
}

/** Tells the plays what has become durable: the ends of calls and of runs, and the changes of queues. */
function observed(store: Store, plays: ReadonlyMap<string, EverturnPlay>): Store {
  return {
    ...store,
    async beginEffect(fence, first) {
      const begun = await store.beginEffect(fence, first);
      if (first !== undefined) tell(plays.get(fence.sessionId), first);
      return begun;
    },
    async commit(fence, commit) {
      const result = await store.commit(fence, commit);
      tell(plays.get(fence.sessionId), commit);
      return result;
    },
  };
}

function tell(playing: EverturnPlay | undefined, { records = [], settle = [], closeRun }: Commit): void {
  if (playing === undefined) return;
  for (const record of records) {
    if (record.kind === 'event' && record.event.type === 'queue_update') playing.queuesLogged();
  }
  for (const { entryId, index } of settle) playing.callEnded(entryId, index);
  if (closeRun !== undefined) playing.runClosed();
}

import type { ScriptedReply } from '../../src/testing/scripted-model.ts';
import type { FaultAgent } from '../faults/agents.ts';
import { faultFile, standingFile, streamFile } from '../faults/points.ts';
import { type FaultSession, FaultStage, type Ground } from '../faults/stage.ts';
import type { FaultWorker } from '../faults/worker-process.ts';
import { waitFor } from '../support/wait-for.ts';
import { historiesOf, type RecordedHistory } from './fetch.ts';

interface Kind {
  agent: FaultAgent;
  replies: ScriptedReply[];
  prompt?: string;
  /** Where the run stands while `meanwhile` happens. */
  point?: string;
  meanwhile?(session: FaultSession): Promise<void>;
}

interface Scene {
  stage: FaultStage;
  worker: FaultWorker;
}

const calling = (...names: string[]): ScriptedReply => ({
  text: 'Let me look',
  calls: names.map((name) => ({ name })),
});
const done: ScriptedReply = { text: 'It is done' };
const streaming = 'inside request 0, before the first token';
const inTool = 'inside call-0-0, before its effect';

/** One short run of each kind: what a session does that another version must be able to go on with. */
const kinds: Record<string, Kind> = {
  tools: { agent: 'plain', replies: [calling('effect_never'), calling('effect_safe'), done] },
  'parallel-batch': { agent: 'plain', replies: [calling('effect_never', 'effect_safe', 'effect_keyed'), done] },
  'sequential-batch': { agent: 'sequential', replies: [calling('effect_never', 'effect_safe'), done] },
  gates: { agent: 'hooked', replies: [calling('effect_never'), done] },
  'local-effects': { agent: 'local', replies: [calling('read_local'), done] },
  'model-error': { agent: 'plain', replies: [calling('effect_never'), { error: '400 invalid_request: no' }] },
  'model-choice': { agent: 'switching', prompt: 'Take another model', replies: [calling('effect_safe'), done] },
  'own-context': { agent: 'large', replies: [calling('effect_safe'), done] },
  steering: {
    agent: 'plain',
    replies: [done, done, done],
    point: streaming,
    async meanwhile({ session }) {
      await session.steer('First this');
      await session.steer('Then that');
    },
  },
  'steering-hook': { agent: 'steered', replies: [calling('effect_safe'), done, done] },
  'follow-up': {
    agent: 'all',
    replies: [done, done],
    point: streaming,
    async meanwhile({ session }) {
      await session.followUp('And this');
      await session.followUp('And that');
    },
  },
  abort: {
    agent: 'plain',
    replies: [calling('effect_never', 'effect_safe'), done],
    point: inTool,
    async meanwhile({ session }) {
      await session.steer('Never mind');
      await session.sendAbort('r1');
    },
  },
  settings: {
    agent: 'plain',
    replies: [calling('effect_safe'), done],
    point: streaming,
    async meanwhile({ session }) {
      await session.setModel('scripted/other');
      await session.setThinkingLevel('high');
      await session.setActiveTools(['effect_safe']);
    },
  },
};

/** A batch that fills the history, over and over: the server suggests continue-as-new after 60 events. */
const rollingKind: Kind = {
  agent: 'plain',
  replies: [
    ...Array.from({ length: 6 }, () => ({
      ...calling(...Array.from({ length: 4 }, () => 'effect_safe')),
      chunkDelayMs: 120,
    })),
    done,
  ],
};
const crashKind: Kind = { agent: 'plain', replies: [calling('effect_never'), done], point: inTool };

export async function recordHistories(ground: {
  plain: Ground;
  rolling: Ground;
}): Promise<Record<string, RecordedHistory>> {
  const recorded: Record<string, RecordedHistory> = {};
  await withScene(ground.plain, async (scene) => {
    let id = 0;
    for (const [name, kind] of Object.entries(kinds)) recorded[name] = last(await play(scene, ++id, kind));
    const crash = { ...crashKind, meanwhile: () => replaceWorker(scene) };
    recorded['crash-and-retry'] = last(await play(scene, ++id, crash));
  });
  await withScene(ground.rolling, async (scene) => {
    const runs = await play(scene, 0, rollingKind);
    for (const [index, run] of runs.entries()) recorded[`continue-as-new-${index + 1}`] = run;
  });
  return recorded;
}

async function withScene(ground: Ground, record: (scene: Scene) => Promise<void>): Promise<void> {
  const stage = await FaultStage.open(ground);
  try {
    await record({ stage, worker: await stage.startWorker() });
  } finally {
    await stage.end();
  }
}

async function replaceWorker(scene: Scene): Promise<void> {
  await scene.worker.kill9();
  scene.worker = await scene.stage.startWorker();
}

async function play({ stage }: Scene, id: number, kind: Kind): Promise<RecordedHistory[]> {
  const { agent, replies, prompt = 'Go on', point, meanwhile } = kind;
  const session = stage.session(id, { name: '', agent, replies });
  if (point !== undefined) session.evidence.put(faultFile, point);
  await session.session.prompt(prompt, { runId: 'r1' });
  if (point !== undefined) {
    await waitFor(() => session.evidence.has(standingFile), { what: point });
    await meanwhile?.(session);
    session.evidence.put(streamFile);
    session.evidence.remove(faultFile);
  }
  await session.session.result('r1');
  await session.session.waitForIdle();
  return historiesOf(stage, session.sessionId);
}

function last(runs: readonly RecordedHistory[]): RecordedHistory {
  const run = runs.at(-1);
  if (run === undefined) throw new Error('nothing was recorded');
  return run;
}

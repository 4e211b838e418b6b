import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ScriptedReply } from '../../src/testing/scripted-model.ts';
import { type CrashAgent, gateLog, holdGateFile, transformLog } from '../support/crash-agents.ts';
import { type CrashSession, CrashStage } from '../support/crash-stage.ts';
import { afterEffectFile, effectsLog, releaseFile } from '../support/crash-tools.ts';
import { waitFor } from '../support/wait-for.ts';
import { holdCommitFile } from '../support/worker-process.ts';

// One worker is killed while some twenty sessions each stand at another place. Another worker takes over, and each test
// looks at what became of one of them.

interface Place {
  /** Where the session stands: "a worker killed NAME …". */
  where: string;
  /** What becomes of it. */
  so: string;
  replies: ScriptedReply[];
  agent?: CrashAgent;
  /** Before the prompt. */
  before?(session: CrashSession): void | Promise<void>;
  /** Waits until the session stands there. */
  stands(session: CrashSession): Promise<void>;
  /** After the kill, while no worker lives. */
  meanwhile?(session: CrashSession): void | Promise<void>;
  /** After the run's end. */
  expect(session: CrashSession): void | Promise<void>;
}

const oneTurn = ['agent_start', 'turn_start', 'user', 'assistant', 'turn_end', 'agent_end: done', 'settled'];

function twoTurns(tool: string, outcome: string): string[] {
  return [
    ...[
      'agent_start',
      'turn_start',
      'user',
      'assistant',
      `start ${tool}`,
      `end ${tool}: ${outcome}`,
      'toolResult',
      'turn_end',
    ],
    ...['turn_start', 'assistant', 'turn_end', 'agent_end: done', 'settled'],
  ];
}

function told(tool: string, outcome: string, note = ''): string {
  if (outcome === 'completed') return `result of ${tool}: ${tool} done`;
  return `result of ${tool} (error): Interrupted, outcome unknown: the worker was lost after ${tool} had started. It may or may not have taken effect.${note} Check before you do it again.`;
}

const streaming = [
  { where: 'before the first token', at: 0, seen: '' },
  { where: 'while streaming', at: 2, seen: 'Hello ' },
  { where: 'after the last token', at: 'all' as const, seen: 'Hello world' },
].map(
  ({ where, at, seen }): Place => ({
    where,
    so: 'costs one more request with the same content',
    agent: 'transforming',
    replies: [{ text: 'Hello world', chunks: 4, holdUntilFile: 'go', holdAfterChunks: at }],
    async stands(session) {
      await session.reached('go.waiting');
      await waitFor(async () => (await session.streamed('r1/0', 1)) === seen, { what: 'what was streamed' });
    },
    meanwhile: (session) => session.evidence.put('go'),
    async expect(session) {
      expect(await session.log('r1')).toEqual(oneTurn);
      const [first, second, ...more] = session.requests();
      expect(more).toEqual([]);
      expect(second?.pid).not.toBe(first?.pid);
      // The hook was asked once: what it gave is kept, and the retry sends the same.
      expect(session.asked(0)).toEqual(['user: PROMPT', 'user: transformed 1']);
      expect(second?.messages).toEqual(first?.messages);
      expect(session.evidence.read(transformLog)).toHaveLength(1);
      expect(await session.streamed('r1/0', 1)).toBe(seen);
      expect(await session.streamed('r1/0', 2)).toBe('Hello world');
    },
  }),
);

const committing = [
  {
    place: 'before' as const,
    requests: 2,
    where: 'between the last token and the commit',
    so: 'costs one more request',
  },
  {
    place: 'after' as const,
    requests: 1,
    where: 'between the commit of a reply and its report',
    so: 'costs no request',
  },
].map(
  ({ place, requests, where, so }): Place => ({
    where,
    so,
    replies: [{ text: 'Hello world' }],
    before: (session) => session.evidence.put(holdCommitFile(place, 'r1/t0/model')),
    stands: (session) => session.reached(`${holdCommitFile(place, 'r1/t0/model')}.waiting`),
    meanwhile: (session) => session.evidence.remove(holdCommitFile(place, 'r1/t0/model')),
    async expect(session) {
      expect(await session.log('r1')).toEqual(oneTurn);
      expect(session.requests()).toHaveLength(requests);
    },
  }),
);

const kinds = [
  { tool: 'effect_never', outcome: 'unknown', so: 'does not enter it again: its outcome is unknown' },
  { tool: 'effect_safe', outcome: 'completed', so: 'enters it again' },
  { tool: 'effect_keyed', outcome: 'completed', so: 'enters it again with the same key' },
];

const inTools = kinds.map(
  ({ tool, outcome, so }): Place => ({
    where: `in ${tool}`,
    so,
    replies: [
      { text: 'Well', calls: [{ name: tool, args: { hold: true, progress: 'half' } }] },
      { text: 'Hello world' },
    ],
    stands: (session) => session.reached('call-0-0.holding'),
    meanwhile: (session) => session.evidence.put(releaseFile),
    async expect(session) {
      expect(await session.log('r1')).toEqual(twoTurns(tool, outcome));
      expect(session.noted(effectsLog)).toEqual(outcome === 'unknown' ? ['entered'] : ['entered', 'entered', 'done']);
      const entries = session.evidence.read(effectsLog);
      expect(new Set(entries.map((line) => line.idempotencyKey)).size).toBe(1);
      if (outcome === 'completed') expect(entries[1]).toMatchObject({ attempt: 2, lastProgress: 'half' });
      const result = told(tool, outcome, ' It last reported: "half".');
      expect(session.asked(1)).toEqual(['user: PROMPT', `assistant: Well +${tool}`, result]);
      expect(session.requests()).toHaveLength(2);
    },
  }),
);

const afterEffects = kinds.map(
  ({ tool, outcome, so }): Place => ({
    where: `right after the effect of ${tool}`,
    so,
    replies: [{ calls: [{ name: tool, args: { stopAfterEffect: true } }] }, { text: 'Hello world' }],
    stands: (session) => session.reached(afterEffectFile),
    async expect(session) {
      expect(await session.log('r1')).toEqual(twoTurns(tool, outcome));
      const effects = session.noted(effectsLog);
      expect(effects).toEqual(outcome === 'unknown' ? ['entered', 'done'] : ['entered', 'done', 'entered', 'done']);
      expect(session.asked(1)[2]).toBe(told(tool, outcome));
    },
  }),
);

const settling = [
  { place: 'before' as const, outcome: 'unknown', so: 'leaves its outcome unknown' },
  { place: 'after' as const, outcome: 'completed', so: 'loses nothing' },
].map(
  ({ place, outcome, so }): Place => ({
    where: `right ${place} the commit of a never tool`,
    so,
    replies: [{ calls: [{ name: 'effect_never' }] }, { text: 'Hello world' }],
    before: (session) => session.evidence.put(holdCommitFile(place, 'r1/0/0/tool')),
    stands: (session) => session.reached(`${holdCommitFile(place, 'r1/0/0/tool')}.waiting`),
    meanwhile: (session) => session.evidence.remove(holdCommitFile(place, 'r1/0/0/tool')),
    async expect(session) {
      expect(await session.log('r1')).toEqual(twoTurns('effect_never', outcome));
      expect(session.noted(effectsLog)).toEqual(['entered', 'done']);
      expect(session.asked(1)[2]).toBe(told('effect_never', outcome));
    },
  }),
);

const reconciled: Place[] = [
  {
    where: 'right after the effect of a tool that can reconcile',
    so: 'finds out that it took place',
    replies: [{ calls: [{ name: 'effect_reconciled', args: { stopAfterEffect: true } }] }, { text: 'Hello world' }],
    stands: (session) => session.reached(afterEffectFile),
    async expect(session) {
      expect(await session.log('r1')).toEqual(twoTurns('effect_reconciled', 'completed'));
      expect(session.noted(effectsLog)).toEqual(['entered', 'done']);
      expect(session.asked(1)[2]).toBe('result of effect_reconciled: effect_reconciled was done before the crash');
    },
  },
  {
    where: 'before the effect of a tool that can reconcile',
    so: 'does not enter it again, and says so',
    replies: [{ calls: [{ name: 'effect_reconciled', args: { hold: true } }] }, { text: 'Hello world' }],
    stands: (session) => session.reached('call-0-0.holding'),
    async expect(session) {
      expect(await session.log('r1')).toEqual(twoTurns('effect_reconciled', 'unknown'));
      expect(session.noted(effectsLog)).toEqual(['entered']);
      expect(session.asked(1)[2]).toBe(told('effect_reconciled', 'unknown'));
    },
  },
];

const gates: Place[] = [
  {
    where: 'in a gate',
    so: 'asks the hook again, and the tool runs once',
    agent: 'gated',
    replies: [{ calls: [{ name: 'effect_never' }] }, { text: 'Hello world' }],
    before: (session) => session.evidence.put(holdGateFile),
    stands: (session) => session.reached('call-0-0.at-gate'),
    meanwhile: (session) => session.evidence.remove(holdGateFile),
    async expect(session) {
      expect(await session.log('r1')).toEqual(twoTurns('effect_never', 'completed'));
      expect(session.noted(gateLog)).toEqual(['asked', 'asked', 'passed']);
      expect(session.noted(effectsLog)).toEqual(['entered', 'done']);
    },
  },
  {
    where: 'in a gate whose calls are decided',
    so: 'does not ask the hook again',
    agent: 'gated',
    replies: [
      { calls: [{ name: 'effect_never' }, { name: 'effect_safe', args: { progress: 'forbidden' } }] },
      { text: 'Hello world' },
    ],
    before: (session) => session.evidence.put(holdCommitFile('before', 'r1/0/gate/0')),
    stands: (session) => session.reached(`${holdCommitFile('before', 'r1/0/gate/0')}.waiting`),
    meanwhile: (session) => session.evidence.remove(holdCommitFile('before', 'r1/0/gate/0')),
    expect(session) {
      expect(session.noted(gateLog)).toEqual(['asked', 'passed', 'asked', 'passed']);
      expect(session.asked(1).slice(2)).toEqual([
        told('effect_never', 'completed'),
        'result of effect_safe (error): not this one',
      ]);
      expect(session.noted(effectsLog)).toEqual(['entered', 'done']);
    },
  },
];

const others: Place[] = [
  {
    where: 'between two effects',
    so: 'is missed by nobody',
    // The tool waits for a worker that does not exist yet.
    replies: [{ calls: [{ name: 'effect_elsewhere' }] }, { text: 'Hello world' }],
    stands: (session) =>
      waitFor(async () => (await session.log('r1')).includes('start effect_elsewhere'), { what: 'the call' }).then(
        () => undefined,
      ),
    async expect(session) {
      expect(await session.log('r1')).toEqual(twoTurns('effect_elsewhere', 'completed'));
      expect(session.noted(effectsLog)).toEqual(['entered', 'done']);
      expect(session.requests()).toHaveLength(2);
    },
  },
  {
    where: 'in one of three calls',
    so: 'keeps the results of the other two, in source order',
    replies: [
      { calls: [{ name: 'effect_never', args: { hold: true } }, { name: 'effect_never' }, { name: 'effect_safe' }] },
      { text: 'Hello world' },
    ],
    async stands(session) {
      await session.reached('call-0-0.holding');
      await session.settled('r1/0', 2);
    },
    expect(session) {
      const results = ['unknown', 'completed'].map((outcome) => told('effect_never', outcome));
      expect(session.asked(1).slice(2)).toEqual([...results, told('effect_safe', 'completed')]);
      expect(session.noted(effectsLog)).toHaveLength(5);
    },
  },
  {
    where: 'while people write',
    so: 'brings their messages into the next requests, once and in order',
    replies: [{ text: 'One', holdUntilFile: 'go' }, { text: 'Two' }, { text: 'Hello world' }],
    stands: (session) => session.reached('go.waiting'),
    async meanwhile(session) {
      await session.steer('steer 1');
      await session.steer('steer 2');
      session.evidence.put('go');
    },
    async expect(session) {
      expect(await session.transcript()).toEqual([
        ...[
          'user: PROMPT',
          'assistant: One',
          'user: steer 1',
          'assistant: Two',
          'user: steer 2',
          'assistant: Hello world',
        ],
      ]);
      expect(session.asked(2)).toEqual(['user: PROMPT', 'assistant: One', 'user: steer 1']);
      expect(session.asked(3)).toEqual((await session.transcript()).slice(0, -1));
    },
  },
  {
    where: 'while retries of the model go on',
    so: 'goes on with them',
    replies: [{ text: 'Hello world', error: '429 rate limit', failTimes: 2 }],
    before: (session) => session.evidence.put(holdCommitFile('before', 'r1/t0/model')),
    stands: (session) => session.reached(`${holdCommitFile('before', 'r1/t0/model')}.waiting`),
    meanwhile: (session) => session.evidence.remove(holdCommitFile('before', 'r1/t0/model')),
    async expect(session) {
      expect(await session.log('r1')).toEqual(oneTurn);
      expect(session.requests()).toHaveLength(4);
    },
  },
  ...(['plain', 'brief'] as const).map(
    (agent): Place => ({
      where: agent === 'plain' ? 'while a session idles' : 'after a session was closed',
      so: 'is not noticed: the next prompt finds everything',
      agent,
      replies: [{ text: 'Hello world' }, { text: 'Again' }],
      async stands(session) {
        await session.session.result('r1');
        if (agent === 'brief') await session.closed();
      },
      async expect(session) {
        const runId = await session.prompt('And now?');
        expect(await session.ended(runId)).toBe('done: Again');
        expect(session.asked(1)).toEqual(['user: PROMPT', 'assistant: Hello world', 'user: And now?']);
        const opened = agent === 'brief' ? ['session_open'] : [];
        expect(await session.log()).toEqual(['session_open', ...oneTurn, ...opened, ...oneTurn]);
      },
    }),
  ),
];

const places = [
  ...streaming,
  ...committing,
  ...inTools,
  ...afterEffects,
  ...settling,
  ...reconciled,
  ...gates,
  ...others,
];
const sessions = new Map<Place, CrashSession>();
let stage: CrashStage;

beforeAll(async () => {
  stage = await CrashStage.open();
  const worker = await stage.startWorker();
  await Promise.all(
    places.map(async (place, index) => {
      const session = stage.session(`${index}`, place.agent ?? 'plain', place.replies);
      sessions.set(place, session);
      await place.before?.(session);
      await session.prompt();
      await place.stands(session);
    }),
  );
  await worker.kill9();
  await Promise.all([...sessions].map(([place, session]) => place.meanwhile?.(session)));
  await Promise.all([stage.startWorker(), stage.startWorker({ elsewhere: true })]);
}, 120_000);

afterAll(() => stage?.end());

test.each(places)('a worker killed $where: $so', async (place) => {
  const session = sessions.get(place);
  if (session === undefined) throw new Error('the session did not get to its place');
  expect(await session.ended('r1')).toBe('done: Hello world');
  await place.expect(session);
  await session.check();
});

import { expect, test } from '@jest/globals';
import type { Effect } from '../../src/activities/effect.ts';
import { askSessionHook } from '../../src/activities/hooks/session-hooks.ts';
import type { Agent } from '../../src/agent/agent.ts';
import type { NewRecord } from '../../src/common/events.ts';
import type { Json } from '../../src/common/json.ts';
import type { BranchPreparation, TreePreparation } from '../../src/hooks/harness-types.ts';
import { testAgent } from '../support/harness.ts';

// session_before_compact and session_before_tree at their gate; the effects that ask them come with compaction.

const compact: { preparation: BranchPreparation; branchEntries: []; customInstructions: string } = {
  preparation: {
    firstKeptEntryId: 'e3',
    messagesToSummarize: [],
    turnPrefixMessages: [],
    retainedTail: [],
    isSplitTurn: false,
    tokensBefore: 1_000,
    fileOps: { read: ['a.ts'], written: [], edited: [] },
    settings: { enabled: true, reserveTokens: 16_384, keepRecentTokens: 20_000 },
  },
  branchEntries: [],
  customInstructions: 'Mind the names.',
};
const tree: { preparation: TreePreparation } = {
  preparation: {
    targetId: 'e1',
    oldLeafId: 'e9',
    commonAncestorId: null,
    entriesToSummarize: [],
    userWantsSummary: true,
  },
};

/** Attempts of one effect without a worker: what is kept is kept between them. */
function attempts() {
  const steps = new Map<string, Json>();
  const log: NewRecord[] = [];
  const abort = new AbortController();
  // What the runner uses of an effect.
  const attempt = (number: number) =>
    ({
      fence: { sessionId: 's', workflowRunId: 'w', effect: 'r/compact', attempt: number, runId: 'r' },
      attempt: number,
      signal: abort.signal,
      stopReason: () => (abort.signal.aborted ? 'abort' : undefined),
      commit: async () => ({ leaf: null }),
      once: async (_, make) => make(),
      step: (name) => steps.get(name),
      saveStep: async (name, outcome) => void steps.set(name, outcome),
      note: (record) => void log.push(record),
    }) satisfies Partial<Effect> as unknown as Effect;
  const told = () =>
    log.map((record) =>
      record.kind === 'event' && record.event.type === 'hook' ? [record.event.handler, record.event.outcome] : [],
    );
  return { attempt, abort, told };
}

function agentWith(...answers: (() => unknown)[]): { agent: Agent; asked: unknown[][] } {
  const agent = testAgent('a');
  const asked: unknown[][] = [];
  for (const [number, answer] of answers.entries()) {
    for (const name of ['session_before_compact', 'session_before_tree'] as const) {
      const handler = async (...args: unknown[]) => {
        asked.push([number, ...args]);
        return answer();
      };
      agent.on(name, handler as never, { delayMs: 1 });
    }
  }
  return { agent, asked };
}

const summary = { summary: 'short', tokensBefore: 1_000, firstKeptEntryId: 'e3' };

test('each handler gets the event with its signal in it and beside it, and the last answer counts', async () => {
  const { agent, asked } = agentWith(
    () => ({ compaction: summary }),
    () => undefined,
    () => ({ compaction: { ...summary, summary: 'shorter' } }),
    () => undefined,
  );
  const { attempt, told, abort } = attempts();
  expect(await askSessionHook(attempt(1), agent, 'session_before_compact', compact)).toEqual({
    compaction: { ...summary, summary: 'shorter' },
  });
  expect(asked).toEqual(
    [0, 1, 2, 3].map((number) => [
      number,
      { type: 'session_before_compact', ...compact, signal: abort.signal },
      abort.signal,
    ]),
  );
  expect(asked[0]?.[2]).toBe(abort.signal);
  expect(told()).toEqual([
    [0, { returned: ['compaction'] }],
    [1, null],
    [2, { returned: ['compaction'] }],
    [3, null],
  ]);
});

test('the first cancel ends the asking', async () => {
  const { agent, asked } = agentWith(
    () => ({ summary: { summary: 's' } }),
    () => ({ cancel: true }),
    () => ({ summary: { summary: 'never' } }),
  );
  const { attempt, told } = attempts();
  expect(await askSessionHook(attempt(1), agent, 'session_before_tree', tree)).toEqual({ cancel: true });
  expect(asked.map(([number]) => number)).toEqual([0, 1]);
  expect(asked[0]?.[1]).toMatchObject({ type: 'session_before_tree', ...tree });
  expect(told().at(-1)).toEqual([1, { cancel: true, returned: [] }]);
});

test('without handlers there is no answer', async () => {
  expect(await askSessionHook(attempts().attempt(1), testAgent('a'), 'session_before_tree', tree)).toBeUndefined();
});

test('a retry of the effect asks only what was not answered', async () => {
  let throws = true;
  const { agent, asked } = agentWith(
    () => ({ customInstructions: 'brief' }),
    () => {
      if (throws) throw new Error('lost');
      return { replaceInstructions: true };
    },
  );
  const { attempt } = attempts();
  const shutdown = { ...attempt(1), stopReason: () => 'shutdown' as const };
  await expect(askSessionHook(shutdown, agent, 'session_before_tree', tree)).rejects.toThrow('lost');
  throws = false;
  expect(await askSessionHook(attempt(2), agent, 'session_before_tree', tree)).toEqual({ replaceInstructions: true });
  expect(await askSessionHook(attempt(3), agent, 'session_before_tree', tree)).toEqual({ replaceInstructions: true });
  expect(asked.map(([number]) => number)).toEqual([0, 1, 1]);
});

test('a handler that throws to the last is an error with code hook; on an abort it is cancelled', async () => {
  const { agent, asked } = agentWith(() => Promise.reject(new Error('no summary')));
  const { attempt, abort } = attempts();
  const error = {
    code: 'hook',
    message: 'Hook session_before_compact failed: no summary',
    details: { hook: 'session_before_compact' },
  };
  await expect(askSessionHook(attempt(1), agent, 'session_before_compact', compact)).rejects.toMatchObject(error);
  expect(asked).toHaveLength(3);
  abort.abort();
  await expect(askSessionHook(attempts().attempt(1), agent, 'session_before_tree', tree)).rejects.toMatchObject({
    code: 'hook',
  });
  await expect(askSessionHook(attempt(1), agent, 'session_before_tree', tree)).rejects.toMatchObject({
    code: 'cancelled',
  });
});

test('what a handler does to its event is not seen by the next', async () => {
  const agent = testAgent('a');
  const seen: number[] = [];
  agent.on('session_before_compact', ({ preparation }) => {
    seen.push(preparation.tokensBefore);
    preparation.tokensBefore = 0;
    return undefined;
  });
  agent.on('session_before_compact', ({ preparation }) => void seen.push(preparation.tokensBefore) as undefined);
  await askSessionHook(attempts().attempt(1), agent, 'session_before_compact', compact);
  expect(seen).toEqual([1_000, 1_000]);
});

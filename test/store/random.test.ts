import { describe, expect, test } from '@jest/globals';
import { toolCallsOf } from '../../src/common/messages.ts';
import type { Commit, Fence, Store } from '../../src/store/types.ts';
import {
  assistant,
  claim,
  claimTool,
  entry,
  event,
  fence,
  readAll,
  settled,
  startOf,
  takeOver,
  tempSession,
} from './helpers.ts';

/** Numbers that are the same in every run of the test. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/**
 * A session whose owner dies at any moment: it prompts, replies, claims and settles at random, repeats any write, and is
 * taken over by a workflow run that goes on with the run or does not.
 */
class RandomSession {
  readonly entered: string[] = [];
  private owner = 1;
  private run: string | undefined;
  private runs = 0;
  private turn = 0;
  private open: number[] = [];
  private calls: string[] = [];
  private sequential = false;
  private readonly store: Store;
  private readonly random: (below: number) => number;

  constructor(store: Store, random: (below: number) => number) {
    this.store = store;
    this.random = random;
  }

  async step(): Promise<void> {
    if (this.random(7) === 0) return this.takeOver(this.random(2) === 0);
    if (this.run === undefined) return this.prompt();
    if (this.calls.length === 0) return this.reply();
    if (this.open.length > 0) return this.random(2) === 0 ? this.claim() : this.settle();
    return this.endTurn();
  }

  async takeOver(goOn: boolean): Promise<void> {
    this.owner += 1;
    await takeOver(this.store, `w${this.owner}`, goOn ? this.run : undefined);
    if (!goOn) this.forget();
  }

  private async prompt(): Promise<void> {
    this.runs += 1;
    this.run = `r${this.runs}`;
    await this.write('open', {
      openRun: { runId: this.run, token: 't' },
      records: [
        event(`${this.run}/agent_start`, { type: 'agent_start' }),
        event(`${this.run}/0/turn_start`, { type: 'turn_start' }),
        entry(`${this.run}/prompt`),
      ],
    });
  }

  private async reply(): Promise<void> {
    const count = 1 + this.random(4);
    this.calls = Array.from({ length: count }, (_, index) => `call${index}`);
    this.open = this.calls.map((_, index) => index);
    this.sequential = this.random(3) === 0;
    const calls = this.calls.map((toolCallId, index) => ({
      index,
      toolCallId,
      toolName: 'read',
      resultEntryId: `${this.replyId}/${index}`,
      args: {},
    }));
    await this.write('model', {
      records: [assistant(this.replyId, this.calls)],
      batch: { entryId: this.replyId, calls },
      result: null,
    });
  }

  private async claim(): Promise<void> {
    const index = this.next();
    const start = startOf(this.replyId, index, this.calls[index] ?? '');
    const { state } = await claimTool(this.store, this.fence(`tool/${index}`), {
      ...claim(this.replyId, index),
      start,
    });
    if (state === 'entered') this.entered.push(`${this.replyId}/${index}`);
  }

  private async settle(): Promise<void> {
    const index = this.next();
    this.open = this.open.filter((other) => other !== index);
    const before = [startOf(this.replyId, index, this.calls[index] ?? '')];
    const settle = [settled(this.replyId, index, { before, sequential: this.sequential })];
    await this.write(`tool/${index}`, { settle, result: index });
  }

  private async endTurn(): Promise<void> {
    const toolResultIds = this.calls.map((_, index) => `${this.replyId}/${index}`);
    const end = event(`${this.replyId}/turn_end`, { type: 'turn_end', messageId: this.replyId, toolResultIds });
    if (this.random(2) === 0) {
      const records = [end, event(`${this.run}/agent_end`, { type: 'agent_end', status: 'done' })];
      const settledEvent = event(`${this.run}/settled`, { type: 'settled', nextTurnCount: 0 });
      await this.write('end', {
        records: [...records, settledEvent],
        closeRun: { runId: this.run ?? '', status: 'done' },
      });
      return this.forget();
    }
    const next = event(`${this.run}/${this.turn + 1}/turn_start`, { type: 'turn_start' });
    await this.write('turn_end', { records: [end] });
    this.turn += 1;
    this.calls = [];
    await this.write('turn_start', { records: [next] });
  }

  /** Sequential batches settle in source order, others in any. */
  private next(): number {
    return this.open[this.sequential ? 0 : this.random(this.open.length)] ?? 0;
  }

  private get replyId(): string {
    return `${this.run}/${this.turn}`;
  }

  private fence(effect: string): Fence {
    return fence(`${this.replyId}/${effect}`, {
      workflowRunId: `w${this.owner}`,
      runId: this.run ?? '',
      turn: this.turn,
    });
  }

  private async write(effect: string, commit: Commit): Promise<void> {
    await this.store.commit(this.fence(effect), commit);
    if (this.random(3) === 0) await this.store.commit({ ...this.fence(effect), attempt: 2 }, commit);
  }

  private forget(): void {
    this.run = undefined;
    this.turn = 0;
    this.calls = [];
    this.open = [];
  }
}

/** What begins and does not end, or ends without a beginning, or ends before it. */
async function unbalanced(store: Store): Promise<string[]> {
  const open = new Set<string>();
  const wrong: string[] = [];
  for (const { body, runId, turn } of await readAll(store)) {
    if (body.kind !== 'event') continue;
    const match = /^(agent|turn|tool_execution)_(start|end)$/.exec(body.event.type);
    if (match === null) continue;
    const call = 'toolCallId' in body.event ? body.event.toolCallId : '';
    const name = `${match[1]} ${runId} ${match[1] === 'agent' ? '' : turn} ${call}`;
    if (match[2] === 'start') open.add(name);
    else if (!open.delete(name)) wrong.push(`${name} ended twice or never began`);
  }
  return [...wrong, ...[...open].map((name) => `${name} did not end`)];
}

describe('a session whose owners die at random', () => {
  test.each([1, 2, 3, 4, 5, 6])(
    'every call has one result, every start one end, and no tool runs twice (seed %i)',
    async (seed) => {
      const store = await tempSession();
      const session = new RandomSession(store, randomFrom(seed));
      for (let step = 0; step < 150; step++) await session.step();
      await session.takeOver(false);

      expect(await store.verify('s')).toMatchObject({ ok: true });
      expect(await unbalanced(store)).toEqual([]);
      expect(session.entered).toHaveLength(new Set(session.entered).size);
      expect(session.entered.length).toBeGreaterThan(10);
      const { entries } = await store.readPath('s', (await store.readSession('s'))?.leaf ?? '');
      const messages = entries.flatMap((node) => (node.type === 'message' ? [node.message] : []));
      const expected = messages.flatMap<unknown>((message) => {
        if (message.role === 'toolResult') return [];
        return message.role === 'assistant' ? [message, ...toolCallsOf(message).map((call) => call.id)] : [message];
      });
      expect(messages.map((message) => (message.role === 'toolResult' ? message.toolCallId : message))).toEqual(
        expected,
      );
      expect((await store.listRuns('s')).filter((run) => run.status === 'open')).toEqual([]);
    },
  );
});

import { expect, test } from '@jest/globals';
import { EverturnError } from '../../src/common/errors.ts';
import type { Commit, Store } from '../../src/store/types.ts';
import { type Harness, type Talk, testAgent, useHarness } from '../support/harness.ts';
import { waitFor } from '../support/wait-for.ts';

// What the model was given is kept while it replies, or with a reply that is quicker.

const commits: { sessionId: string; parts: Commit }[] = [];
let transformed = 0;
/** Sessions whose request cannot be kept any more. */
const shutOut = new Set<string>();

function watched(store: Store): Store {
  return {
    ...store,
    async commit(fence, parts) {
      commits.push({ sessionId: fence.sessionId, parts });
      if (shutOut.has(fence.sessionId) && parts.request !== undefined && parts.result === undefined)
        throw new EverturnError('fenced', 'another worker has taken over');
      return store.commit(fence, parts);
    },
  };
}

const harness: Harness = useHarness({
  agents: () => [
    testAgent('plain'),
    testAgent('transforming', {
      transformContext: (messages) => {
        transformed += 1;
        const text = `seen ${transformed}`;
        return [...messages, { role: 'user', content: [{ type: 'text', text }], timestamp: 0 }];
      },
    }),
  ],
  wrapStore: watched,
});

const requestsOf = ({ sessionId }: Talk) =>
  commits.filter((commit) => commit.sessionId === sessionId && commit.parts.request !== undefined);

test('a quick reply takes its request along into its own transaction', async () => {
  const talk = harness.talk('plain', [{ text: 'A' }]);
  await talk.session.run('Go', { runId: 'r' });
  expect(requestsOf(talk).map(({ parts }) => parts.result !== undefined)).toEqual([true]);
  expect(await harness.store.readRequest(talk.sessionId, 'r', 0)).toMatchObject({ messages: [{ entry: 'r/prompt' }] });
});

test('a slow reply has its request in the store while it streams, once', async () => {
  const talk = harness.talk('plain', [{ text: 'Once upon a time', holdUntilFile: 'hold', holdAfterChunks: 1 }]);
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  const kept = await waitFor(() => harness.store.readRequest(talk.sessionId, runId, 0), { what: 'the request' });
  expect(kept.messages).toEqual([{ entry: `${runId}/prompt` }]);
  talk.release('hold');
  expect(await talk.session.result(runId)).toMatchObject({ status: 'done' });
  expect(requestsOf(talk)).toHaveLength(1);
});

test('a retry of a reply that failed at once sends the same, and asks no hook again', async () => {
  let asked = 0;
  const talk = harness.talk('transforming', () => {
    asked += 1;
    return asked === 1 ? { error: '503 overloaded' } : { text: 'A' };
  });
  await talk.session.run('Go');
  expect(talk.asked).toEqual([
    ['user: Go', 'user: seen 1'],
    ['user: Go', 'user: seen 1'],
  ]);
  expect(transformed).toBe(1);
});

test('a worker that is shut out while the model replies breaks the reply off', async () => {
  const talk = harness.talk('plain', [{ text: 'Once upon a time', holdUntilFile: 'hold', holdAfterChunks: 1 }]);
  talk.checked = false;
  shutOut.add(talk.sessionId);
  const { runId } = await talk.session.prompt('Go');
  await talk.held('hold');
  // The hold is never released: only its signal ends the stream.
  await waitFor(() => requestsOf(talk).length > 1, { what: 'another attempt' });
  shutOut.delete(talk.sessionId);
  await talk.session.abort(runId);
  expect(await talk.session.result(runId)).toMatchObject({ status: 'aborted' });
});

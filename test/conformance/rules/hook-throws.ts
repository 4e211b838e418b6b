import type { Plain } from '../normal.ts';
import type { Observation, SeenEvent } from '../observation.ts';
import type { Rule } from '../rules.ts';
import { byRun, eachMessage, type Message, messageOf } from './walk.ts';

const told = /^Hook \w+ failed: (.*)$/s;

/**
 * Difference 18: a hook that ends the run. The text says which hook it was; the caller's promise rejects; and where pi
 * leaves nothing of a run behind whose before_agent_start threw, the messages and the failure are written. Difference 39:
 * agent_end tells all messages of a failed run, and in pi only the failure.
 */
export const hookThrows: Rule = ({ scenario, pi, everturn, use }) => {
  eachMessage(everturn, (message) => {
    const cause = message.stopReason === 'error' ? told.exec(message.errorMessage ?? '')?.[1] : undefined;
    if (cause === undefined) return;
    message.errorMessage = cause;
    use(18);
  });
  for (const [index, end] of everturn.ends.entries()) {
    if (end.status === 'rejected' && told.test(end.thrown ?? '')) everturn.ends[index] = { status: 'error' };
  }
  const last = pi.ends.length - 1;
  if (pi.ends[last]?.status === 'rejected' && scenario.runs[last]?.start.some(({ throws }) => throws)) {
    addLostRun(pi, everturn, pi.ends[last]?.thrown ?? '');
    pi.ends[last] = { status: 'error' };
    use(18);
  }
  for (const run of byRun(pi.events)) {
    const end = run.find(({ type }) => type === 'agent_end');
    const messages = run.flatMap((event) => messageOf(event) ?? []);
    const [only] = (end?.messages ?? []) as unknown as Message[];
    if (
      end === undefined ||
      messages.length === 1 ||
      (end.messages as Plain[]).length !== 1 ||
      only?.stopReason !== 'error'
    )
      continue;
    end.messages = messages as unknown as Plain;
    use(39);
  }
};

/** The run that pi forgot: its prompt, with the messages for the next turn that it had drained, and the failure. */
function addLostRun(pi: Observation, everturn: Observation, cause: string): void {
  const had = pi.transcript.length;
  const entries = everturn.transcript.slice(had);
  // The texts are checked against what pi was told to say: its last queue_update, and the prompt that it rejected.
  const users = entries.slice(0, -1).map(({ message }) => message as unknown as Message);
  const expected = [...drained(pi.events), pi.calls.findLast(({ hook }) => hook === 'before_agent_start')].map(
    (item) => (typeof item === 'object' && item !== null && 'seen' in item ? promptContent(item.seen) : item),
  );
  if (JSON.stringify(users.map(({ content }) => content)) !== JSON.stringify(expected)) return;
  const failure = entries.at(-1)?.message as unknown as Message;
  if (failure?.errorMessage !== cause) return;
  pi.transcript.push(...entries);
  const messages = entries.map(({ message }) => message as Plain);
  const message = (value: Plain): SeenEvent => ({ type: 'message', message: value, updates: [] });
  pi.events.push(
    ...[{ type: 'agent_start' }, { type: 'turn_start' }, ...messages.map(message)],
    { type: 'turn_end', message: messages.at(-1) as Plain, toolResults: [] },
    { type: 'save_point', hadPendingMutations: false },
    { type: 'agent_end', messages },
    { type: 'settled', nextTurnCount: 0 },
  );
}

/** What a run that began with the last queue_update took from the queue for the next turn. */
function drained(events: readonly SeenEvent[]): Plain[] {
  const [before, after] = events.slice(-2);
  if (after?.type !== 'queue_update' || before === undefined) return [];
  const updates = events.filter(({ type }) => type === 'queue_update');
  return (updates.at(-2)?.nextTurn as Plain[] | undefined) ?? [];
}

function promptContent(seen: Plain): Plain {
  const { prompt, images } = seen as { prompt: string; images: Plain[] };
  return [{ text: prompt, type: 'text' }, ...images];
}

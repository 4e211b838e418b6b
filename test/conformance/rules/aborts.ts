import type { Plain } from '../normal.ts';
import type { SeenEvent } from '../observation.ts';
import type { Rule, Sides } from '../rules.ts';
import { callAt } from '../scenario.ts';
import { callIds, eachList, type Message, messageOf } from './walk.ts';

const abortedText = 'Operation aborted';
const requestHooks: ReadonlySet<string> = new Set([
  'context',
  'transformContext',
  'convertToLlm',
  'before_provider_request',
  'before_provider_payload',
]);

/**
 * Difference 12: calls that an abort kept from running have events and a result. Difference 52: after an abort no hook is
 * asked for a request that will not be made. Difference 5: the queue hooks are not asked then either. Difference 58: a gate
 * that throws after an abort does not make a failed call of an aborted one.
 */
export const aborts: Rule = (sides) => {
  const { pi, everturn, scenario, use } = sides;
  if (!pi.ends.some(({ status }) => status === 'aborted')) return;
  abortsWin(sides);
  const replies = repliesByCall(pi);
  eachList(pi, (messages) => {
    const added = [addResults(messages), addToHead(messages, replies)];
    if (added.includes(true)) use(12);
  });
  addToTranscript(sides);
  for (const { moment } of pi.policyCalls as unknown as {
    moment: { toolResults: Message[]; context: { messages: Message[] } };
  }[]) {
    const results = trailingResults(moment.context.messages);
    if (results.length > moment.toolResults.length) moment.toolResults = results;
  }
  pi.events = calmBatches(addEvents(pi.events));
  everturn.events = calmBatches(everturn.events);
  const executed = new Set(
    pi.calls.flatMap(({ hook, call }) => (hook === 'execute' && call !== undefined ? [call] : [])),
  );
  pi.calls = pi.calls.filter(({ hook, run, turn, call, aborted }) => {
    if (!aborted) return true;
    if (hook === 'getSteeringMessages' || hook === 'getFollowUpMessages') return drop(use, 5);
    if (requestHooks.has(hook) && turn >= (scenario.runs[run]?.turns.length ?? 0)) return drop(use, 52);
    if ((hook === 'tool_result' || hook === 'afterToolCall') && call !== undefined && !executed.has(call))
      return drop(use, 12);
    return true;
  });
};

function abortsWin({ scenario, pi, use }: Sides): void {
  for (const { hook, handler, call = '', move, aborted } of pi.calls) {
    const aborts = callAt(scenario, call)?.inGate.some((action) => action.do === 'abort');
    if (!(aborted || aborts) || move !== 'throw' || (hook !== 'tool_call' && hook !== 'beforeToolCall')) continue;
    const thrown = JSON.stringify(`scripted in ${hook} ${call}.${handler}`);
    Object.assign(pi, JSON.parse(JSON.stringify(pi).replaceAll(thrown, JSON.stringify(abortedText))));
    use(58);
  }
}

function drop(use: Sides['use'], number: number): false {
  use(number);
  return false;
}

function abortedResult(id: string, toolName: string): Message {
  const result = {
    content: [{ text: abortedText, type: 'text' }],
    details: {},
    isError: true,
    role: 'toolResult',
    toolCallId: id,
    toolName,
  };
  return result as unknown as Message;
}

function toolNameOf(message: Message, id: string): string {
  const blocks = message.content as { id?: string; name?: string }[];
  return blocks.find((block) => block.id === id)?.name ?? '';
}

/** Puts the missing results behind those that are there. @returns whether any was missing */
function addResults(messages: Message[]): boolean {
  let added = false;
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index] as Message;
    if (message.role !== 'assistant' || message.stopReason !== 'toolUse') continue;
    let end = index + 1;
    while (messages[end]?.role === 'toolResult') end += 1;
    const there = messages.slice(index + 1, end).map(({ toolCallId }) => toolCallId);
    const isLast = end === messages.length && there.length === 0;
    // A list that ends in the reply itself: nothing has run yet.
    if (isLast) continue;
    const missing = callIds(message).filter((id) => !there.includes(id));
    messages.splice(end, 0, ...missing.map((id) => abortedResult(id, toolNameOf(message, id))));
    added ||= missing.length > 0;
  }
  return added;
}

function repliesByCall({ transcript }: Sides['pi']): Map<string, Message> {
  const messages = transcript.flatMap(({ message }) => (message === undefined ? [] : [message as unknown as Message]));
  return new Map(messages.flatMap((message) => callIds(message).map((id) => [id, message] as const)));
}

/** The same for a list whose reply a hook has dropped from its head: what an abort kept from running comes last. */
function addToHead(messages: Message[], replies: ReadonlyMap<string, Message>): boolean {
  const end = messages.findIndex(({ role }) => role !== 'toolResult');
  const last = messages[(end < 0 ? messages.length : end) - 1]?.toolCallId;
  const reply = last === undefined ? undefined : replies.get(last);
  if (last === undefined || reply === undefined) return false;
  const ids = callIds(reply);
  const missing = ids.slice(ids.indexOf(last) + 1);
  messages.splice(end < 0 ? messages.length : end, 0, ...missing.map((id) => abortedResult(id, toolNameOf(reply, id))));
  return missing.length > 0;
}

function addToTranscript({ pi, use }: Sides): void {
  const entries = pi.transcript.splice(0);
  for (const [index, entry] of entries.entries()) {
    pi.transcript.push(entry);
    const next = entries[index + 1];
    const role = (item: typeof next) => (item?.message as Message | undefined)?.role;
    if (role(entry) !== 'toolResult' && role(entry) !== 'assistant') continue;
    if (role(next) === 'toolResult') continue;
    const begin = pi.transcript.findLastIndex((item) => role(item) === 'assistant');
    const messages = pi.transcript.slice(begin).map(({ message }) => message as unknown as Message);
    const [reply] = messages;
    if (reply?.stopReason !== 'toolUse') continue;
    const there = messages.map(({ toolCallId }) => toolCallId);
    for (const id of callIds(reply).filter((call) => !there.includes(call))) {
      pi.transcript.push({ message: abortedResult(id, toolNameOf(reply, id)) as unknown as Plain, type: 'message' });
      use(12);
    }
  }
}

function trailingResults(messages: readonly Message[]): Message[] {
  const from = messages.findLastIndex(({ role }) => role !== 'toolResult');
  return messages.slice(from + 1);
}

/** Adds the events of the calls that have none, right before the end of their turn. */
function addEvents(events: readonly SeenEvent[]): SeenEvent[] {
  return events.flatMap((event) => {
    const message = event.message as unknown as Message;
    if (event.type !== 'turn_end' || message.stopReason !== 'toolUse') return [event];
    const there = event.toolResults as string[];
    const missing = callIds(message).filter((id) => !there.includes(id));
    const blocks = message.content as { id?: string; arguments?: Plain }[];
    const added = missing.flatMap((id): SeenEvent[] => {
      const tool = toolNameOf(message, id);
      const result = { content: [{ text: abortedText, type: 'text' }], details: {} };
      return [
        {
          type: 'tool_execution_start',
          call: id,
          tool,
          args: blocks.find((block) => block.id === id)?.arguments ?? null,
        },
        { type: 'tool_execution_end', call: id, tool, result, isError: true },
        { type: 'message', message: abortedResult(id, tool) as unknown as Plain, updates: [] },
      ];
    });
    return [...added, { ...event, toolResults: callIds(message) }];
  });
}

/**
 * In a turn with calls that ended as aborted, these stand in no order among the others: their starts and ends come last,
 * in source order, and then the results of the whole batch.
 */
function calmBatches(events: readonly SeenEvent[]): SeenEvent[] {
  const calm: SeenEvent[] = [];
  for (const event of events) {
    if (event.type !== 'turn_end') {
      calm.push(event);
      continue;
    }
    const begin = calm.findLastIndex(({ type }) => type === 'turn_start');
    calm.push(...calmTurn(calm.splice(begin + 1)), event);
  }
  return calm;
}

function calmTurn(events: SeenEvent[]): SeenEvent[] {
  const isAborted = ({ type, result }: SeenEvent) =>
    type === 'tool_execution_end' && JSON.stringify(result).includes(`"text":"${abortedText}"`);
  const aborted = new Set(events.filter(isAborted).map(({ call }) => String(call)));
  if (aborted.size === 0) return events;
  const isResult = (event: SeenEvent) => messageOf(event)?.role === 'toolResult';
  const isMark = ({ type, call }: SeenEvent) => type.startsWith('tool_execution') && aborted.has(String(call));
  const byCall = (left: SeenEvent, right: SeenEvent) => String(left.call).localeCompare(String(right.call));
  const byResult = (left: SeenEvent, right: SeenEvent) =>
    String(messageOf(left)?.toolCallId).localeCompare(String(messageOf(right)?.toolCallId));
  return [
    ...events.filter((event) => !isMark(event) && !isResult(event)),
    ...events.filter(isMark).sort(byCall),
    ...events.filter(isResult).sort(byResult),
  ];
}

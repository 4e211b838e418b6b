/**
 * The generic policy: the same logic on both sides, sandbox-safe. What it decides stands as marks in the text of the
 * assistant message, such as "[stop] [level:high] [model:play/other] [keep:2] [prompt]".
 */
export interface Marks {
  stop: boolean;
  model?: string;
  level?: string;
  keep?: number;
  prompt: boolean;
}

export interface PolicyMoment {
  message: { content: unknown };
  toolResults: readonly { toolCallId: string }[];
  context: { systemPrompt: string; messages: readonly { role: string; content?: unknown }[] };
  newMessages: readonly { role: string; content?: unknown }[];
}

/** One call of a policy: what it was asked with. */
export interface PolicyCall {
  hook: 'shouldStopAfterTurn' | 'prepareNextTurn';
  moment: PolicyMoment;
}

export function textIn(content: unknown): string {
  if (!Array.isArray(content)) return String(content ?? '');
  return content.map((block: { text?: string; name?: string }) => block.text ?? block.name ?? '').join('|');
}

export function marksOf(content: unknown): Marks {
  const text = textIn(content);
  const value = (name: string) => new RegExp(`\\[${name}:([^\\]]+)\\]`).exec(text)?.[1];
  const [model, level, keep] = [value('model'), value('level'), value('keep')];
  return {
    stop: text.includes('[stop]'),
    prompt: text.includes('[prompt]'),
    ...(model === undefined ? {} : { model }),
    ...(level === undefined ? {} : { level }),
    ...(keep === undefined ? {} : { keep: Number(keep) }),
  };
}

/** The moment as it is now: pi's lists go on growing. */
export function policyCall(
  hook: PolicyCall['hook'],
  { message, toolResults, context, newMessages }: PolicyMoment,
): PolicyCall {
  const { systemPrompt, messages } = context;
  const moment = { message, toolResults, context: { systemPrompt, messages }, newMessages };
  return { hook, moment: JSON.parse(JSON.stringify(moment)) as PolicyMoment };
}

/** What prepareNextTurn answers; the model as "provider/id". */
export function nextTurnOf<Context extends PolicyMoment['context']>(moment: {
  message: { content: unknown };
  context: Context;
}): { context?: Context; model?: string; level?: string } | undefined {
  const { model, level, keep, prompt } = marksOf(moment.message.content);
  const { systemPrompt, messages } = moment.context;
  const context = {
    ...moment.context,
    systemPrompt: prompt ? `${systemPrompt} Once more.` : systemPrompt,
    messages: keep === undefined ? [...messages] : lastWhole(messages, keep),
  };
  const update = {
    ...(keep === undefined && !prompt ? {} : { context }),
    ...(model === undefined ? {} : { model }),
    ...(level === undefined ? {} : { level }),
  };
  return Object.keys(update).length === 0 ? undefined : update;
}

/** The last messages, from a user message on, so that no tool result stands without its call. */
function lastWhole<Message extends { role: string }>(messages: readonly Message[], keep: number): Message[] {
  const users = messages.flatMap(({ role }, index) => (role === 'user' ? [index] : []));
  return messages.slice(users.at(-keep) ?? 0);
}

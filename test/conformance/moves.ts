import type {
  CallScript,
  ContextMove,
  GateMove,
  PayloadMove,
  RequestMove,
  ResultMove,
  StartMove,
  TurnScript,
} from './scenario.ts';

/** What hooks and tools answer, for each move of the script. The same values go to pi and to Everturn. */

export interface Text {
  type: 'text';
  text: string;
}
export const text = (value: string): Text[] => [{ type: 'text', text: value }];
export const image = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png' };
export const userMessage = (value: string) => ({ role: 'user' as const, content: text(value), timestamp: 1 });

/** What prompts by name are made from. */
export const resources = {
  skills: [
    { name: 'helper', description: 'Helps.', content: 'Help well.\nThen stop.', filePath: '/skills/helper/SKILL.md' },
  ],
  promptTemplates: [
    // biome-ignore lint/suspicious/noTemplateCurlyInString: pi's own placeholders
    { name: 'ask', description: 'Asks.', content: 'Ask $1 and $2 of $ARGUMENTS; ${@:2} ${@:1:1} $3 $@' },
  ],
};
export const templateArgs = (prompt: string) => [prompt, 'for $1 more'];

/** Thrown by hooks of the script. */
function scriptedError(where: string): Error {
  return new Error(`scripted in ${where}`);
}

export function usageOf(tokens: number) {
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  return { input: tokens, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: tokens + 1, cost };
}

export interface StartAnswer {
  messages?: object[];
  systemPrompt?: string;
}

export function startAnswer(move: StartMove | undefined, label: string, systemPrompt: string): StartAnswer | undefined {
  if (move === undefined) return undefined;
  if (move.throws) throw scriptedError(label);
  const messages = move.messages.map((role, index) => {
    if (role === 'user') return userMessage(`${label} ${index}`);
    if (role === 'note') return { role: 'note', text: `${label} ${index}`, timestamp: 1 };
    return { role: 'custom', customType: 'hint', content: `${label} ${index}`, display: true, timestamp: 1 };
  });
  if (messages.length === 0 && !move.systemPrompt) return undefined;
  return {
    ...(messages.length === 0 ? {} : { messages }),
    ...(move.systemPrompt ? { systemPrompt: `${systemPrompt} (${label})` } : {}),
  };
}

export function contextAnswer<Message extends object>(
  move: ContextMove | undefined,
  label: string,
  messages: Message[],
): Message[] | undefined {
  switch (move) {
    case 'throw':
      throw scriptedError(label);
    case 'dropFirst':
      return messages.slice(1);
    case 'add':
      return [...messages, userMessage(label) as unknown as Message];
    default:
      return undefined;
  }
}

export interface OptionsPatch {
  headers?: Record<string, string | undefined>;
  metadata?: Record<string, unknown> | undefined;
  cacheRetention?: 'none' | 'short' | 'long' | undefined;
}

export function requestAnswer(
  move: RequestMove | undefined,
  label: string,
): { streamOptions: OptionsPatch } | undefined {
  switch (move) {
    case 'throw':
      throw scriptedError(label);
    case 'headers':
      return { streamOptions: { headers: { 'x-label': label, 'x-base': undefined } } };
    case 'metadata':
      return { streamOptions: { metadata: { label } } };
    case 'cacheRetention':
      return { streamOptions: { cacheRetention: 'long' } };
    case 'clear':
      return { streamOptions: { metadata: undefined, cacheRetention: undefined } };
    default:
      return undefined;
  }
}

export function payloadAnswer(
  move: PayloadMove | undefined,
  label: string,
  payload: unknown,
): { payload: unknown } | undefined {
  if (move === 'throw') throw scriptedError(label);
  return move === 'replace' ? { payload: { ...(payload as object), label } } : undefined;
}

export function gateAnswer(
  move: GateMove | undefined,
  label: string,
  input: { text?: string },
): { block?: boolean; reason?: string } | undefined {
  switch (move) {
    case 'throw':
      throw scriptedError(label);
    case 'block':
      return { block: true, reason: `no: ${label}` };
    case 'blockSilently':
      return { block: true };
    case 'pass':
      return { block: false };
    case 'change':
      input.text = `${input.text} (${label})`;
      return undefined;
    default:
      return undefined;
  }
}

export interface ResultAnswer {
  content?: Text[];
  details?: unknown;
  isError?: boolean;
  usage?: ReturnType<typeof usageOf>;
  terminate?: boolean;
}

export function resultAnswer(move: ResultMove | undefined, label: string): ResultAnswer | undefined {
  switch (move) {
    case 'throw':
      throw scriptedError(label);
    case 'content':
      return { content: text(label) };
    case 'details':
      return { details: { label } };
    case 'isError':
      return { isError: true };
    case 'notError':
      return { isError: false };
    case 'usage':
      return { usage: usageOf(7) };
    case 'terminate':
      return { terminate: true };
    default:
      return undefined;
  }
}

export function toolResult(call: CallScript, id: string) {
  return {
    content: text(`result of ${id}`),
    details: call.details ? { id, deep: { list: [1, null] } } : {},
    ...(call.usage ? { usage: usageOf(3) } : {}),
    ...(call.terminate ? { terminate: true } : {}),
  };
}

/** Arguments as the model writes them. `alias` takes another name for its text, which prepareArguments puts right. */
export function argumentsOf(call: CallScript, id: string): Record<string, string | number | boolean> {
  const name = call.tool === 'alias' ? 'says' : 'text';
  switch (call.args) {
    case 'coerced':
      return { [name]: id, times: '5' };
    case 'extra':
      return { [name]: id, more: true };
    case 'invalid':
      return { times: 1 };
    default:
      return { [name]: id };
  }
}

/** The text of a reply: its place, and the marks that the policies read. */
export function replyText(run: number, turn: number, script: TurnScript | undefined): string {
  if (script === undefined) return `over ${run}.${turn}`;
  const { stop, model, level, keep, prompt } = script.policy;
  const marks = [
    stop ? '[stop]' : '',
    model === undefined ? '' : `[model:${model}]`,
    level === undefined ? '' : `[level:${level}]`,
    keep === undefined ? '' : `[keep:${keep}]`,
    prompt ? '[prompt]' : '',
  ];
  return [`reply ${run}.${turn}`, ...marks.filter(Boolean)].join(' ');
}

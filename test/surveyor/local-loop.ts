import { type AssistantMessage, createModels, type Message, type ToolResultMessage } from '@earendil-works/pi-ai';
import type { Tool, ToolContext, ToolReturn } from 'everturn';
import { offlineProvider } from '../../examples/surveyor/offline-model.ts';

export interface LoopOptions {
  tools: readonly Tool[];
  /** The first user message. */
  prompt: string;
  /** User messages that arrive while the turn of this number (from 0) runs its tools, or after an answer. */
  steer?: Record<number, string>;
  /** User messages that wait until there is an answer. */
  followUps?: string[];
  /** Given in place of a tool's result: what a crash or a broken tool would leave. */
  fail?(name: string, args: Record<string, unknown>, entry: number): string | undefined;
  /** A transcript to go on with. */
  messages?: Message[];
  maxTurns?: number;
}

export interface LoopResult {
  messages: Message[];
  turns: number;
  /** Text of each answer, in order. */
  answers: string[];
  /** "name" of each call that was made, in order. */
  called: string[];
}

/** The agent loop without Temporal: the offline model and the real tools, one after the other. */
export async function runLocally(options: LoopOptions): Promise<LoopResult> {
  const messages: Message[] = [...(options.messages ?? []), user(options.prompt)];
  const followUps = [...(options.followUps ?? [])];
  const answers: string[] = [];
  const called: string[] = [];
  for (let turn = 0; ; turn++) {
    if (turn >= (options.maxTurns ?? 40)) throw new Error('The model did not come to an end');
    const reply = await askModel(messages, options.tools);
    messages.push(reply);
    for (const block of reply.content) {
      if (block.type !== 'toolCall') continue;
      called.push(block.name);
      const failure = options.fail?.(block.name, block.arguments, called.length - 1);
      const result =
        failure === undefined ? await execute(options.tools, block.name, block.arguments) : failed(failure);
      messages.push(toolResult(block.id, block.name, result));
    }
    const steering = options.steer?.[turn];
    if (steering !== undefined) messages.push(user(steering));
    if (reply.stopReason === 'toolUse') continue;
    answers.push(reply.content.map((block) => (block.type === 'text' ? block.text : '')).join(''));
    if (steering !== undefined) continue;
    const next = followUps.shift();
    if (next === undefined) return { messages, turns: turn + 1, answers, called };
    messages.push(user(next));
  }
}

export async function askModel(
  messages: Message[],
  tools: readonly Tool[],
  signal?: AbortSignal,
): Promise<AssistantMessage> {
  const models = createModels();
  models.setProvider(offlineProvider({ pieceDelayMs: 0 }));
  const model = models.getModel('offline', 'surveyor')!;
  const context = {
    systemPrompt: 'Survey the folder.',
    messages,
    tools: tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
  };
  return models.streamSimple(model, context, signal === undefined ? {} : { signal }).result();
}

/** Calls a tool as the executor does: arguments checked, a throw is an error result. */
export async function execute(tools: readonly Tool[], name: string, args: unknown, context: Partial<ToolContext> = {}) {
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) return failed(`Tool ${name} not found`);
  const parsed = tool.schema!.safeParse(args);
  if (!parsed.success) return failed(parsed.error.message);
  try {
    return normal(await tool.execute(parsed.data, { ...quietContext(), ...context }));
  } catch (error) {
    return failed((error as Error).message);
  }
}

function quietContext(): ToolContext {
  return {
    sessionId: 's',
    runId: 'r',
    toolCallId: 'c',
    idempotencyKey: 'k',
    attempt: 1,
    signal: new AbortController().signal,
    onUpdate: () => undefined,
    progress: async () => undefined,
  };
}

export interface Outcome {
  text: string;
  isError: boolean;
}

function normal(result: ToolReturn): Outcome {
  if (typeof result === 'string') return { text: result, isError: false };
  const text = result.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
  return { text, isError: result.isError ?? false };
}

function failed(text: string): Outcome {
  return { text, isError: true };
}

function user(text: string): Message {
  return { role: 'user', content: [{ type: 'text', text }], timestamp: 0 };
}

function toolResult(toolCallId: string, toolName: string, { text, isError }: Outcome): ToolResultMessage {
  return { role: 'toolResult', toolCallId, toolName, content: [{ type: 'text', text }], isError, timestamp: 0 };
}

import type {
  AssistantMessage,
  ImageContent,
  JsonObject,
  Message,
  ToolResultMessage as PiToolResultMessage,
  TextContent,
  ThinkingContent,
  ToolCall,
  Usage,
  UserMessage,
} from '@earendil-works/pi-ai';
import { z } from 'zod';
import { EverturnError } from './errors.ts';
import { emptyUsage } from './usage.ts';

export type {
  AssistantMessage,
  ImageContent,
  JsonObject,
  Message,
  TextContent,
  ThinkingContent,
  ToolCall,
  Usage,
  UserMessage,
};

/** pi-ai's tool result message with details of any shape, as pi's agent core types it. */
export type ToolResultMessage = PiToolResultMessage;

/**
 * Roles of an application's own, added by declaration merging as in pi:
 * `declare module 'everturn' { interface CustomAgentMessages { note: { role: 'note'; text: string; timestamp: number } } }`.
 * They live in the transcript; the default convertToLlm leaves them out of what the model sees.
 */
// biome-ignore lint/suspicious/noEmptyInterface: it is filled by declaration merging
export interface CustomAgentMessages {}

/** A message of the transcript: pi-ai's messages and the application's own roles. */
export type AgentMessage =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | CustomAgentMessages[keyof CustomAgentMessages];

/** Bytes of JSON that one incoming message may have. Larger ones belong in a file that a tool reads. */
const maxMessageBytes = 8 * 1024 * 1024;

const textSchema = z.object({ type: z.literal('text'), text: z.string(), textSignature: z.string().exactOptional() });
const imageSchema = z.object({
  type: z.literal('image'),
  data: z.string().min(1, 'an image needs base64 data'),
  mimeType: z.string().regex(/^image\//, 'mimeType must be image/…'),
});
export const contentSchema = z.array(z.union([textSchema, imageSchema]));

// Milliseconds that a Date can hold: a wild number must not fail a workflow task later.
const timestampSchema = z.number().int().min(0).max(8.64e15);

const userMessageSchema = z.object({
  role: z.literal('user'),
  content: z.union([z.string().min(1, 'the text is empty'), contentSchema.min(1, 'the content is empty')]),
  timestamp: timestampSchema.exactOptional(),
});

// A forged assistant message or tool result would put words into the model's mouth: both are made by effects alone.
const customMessageSchema = z.looseObject({
  role: z
    .string()
    .min(1)
    .refine((role) => !['user', 'assistant', 'toolResult', 'system'].includes(role), 'this role cannot be sent in'),
  timestamp: timestampSchema.exactOptional(),
});

const incomingSchema = z.union([z.string().min(1, 'the text is empty'), userMessageSchema, customMessageSchema]);

/** What `prompt`, `steer`, `followUp` and `nextTurn` take: a text, a user message, or a message of an own role. */
export type MessageInput = z.input<typeof incomingSchema>;

/**
 * Checks a message from outside and gives it its stored shape: content blocks and a timestamp.
 * @param now milliseconds, used when the message has no timestamp
 * @throws EverturnError `invalid_argument` or `message_too_large`
 */
export function parseIncoming(input: unknown, now: number): AgentMessage {
  const parsed = incomingSchema.safeParse(input);
  if (!parsed.success) {
    throw new EverturnError(
      'invalid_argument',
      `Not a message: ${firstIssue(parsed.error)}. Send a text or {role: "user", content}.`,
    );
  }
  const size = utf8Length(JSON.stringify(parsed.data));
  if (size > maxMessageBytes) {
    throw new EverturnError(
      'message_too_large',
      `The message has ${size} bytes, the limit is ${maxMessageBytes}. Put large material into a file and let a tool read it.`,
      { details: { size, limit: maxMessageBytes } },
    );
  }
  const message = parsed.data;
  if (typeof message === 'string') return userMessage(message, [], now);
  if (message.role === 'user' && typeof message.content === 'string') {
    return userMessage(message.content, [], message.timestamp ?? now);
  }
  return { ...message, timestamp: message.timestamp ?? now } as AgentMessage;
}

/** pi's shape of a user message: one text block, then the images. */
export function userMessage(text: string, images: readonly ImageContent[], timestamp: number): UserMessage {
  return { role: 'user', content: [{ type: 'text', text }, ...images], timestamp };
}

export function toolCallsOf(message: AssistantMessage): ToolCall[] {
  return message.content.filter((block): block is ToolCall => block.type === 'toolCall');
}

/** The text blocks of a message, joined by line breaks. */
export function textOf(message: { content?: unknown }): string {
  if (typeof message.content === 'string') return message.content;
  if (!Array.isArray(message.content)) return '';
  return message.content
    .filter((block: { type?: unknown }) => block.type === 'text')
    .map((block: { text: string }) => block.text)
    .join('\n');
}

function firstIssue(error: z.ZodError): string {
  const flat = error.issues.flatMap((issue) => (issue.code === 'invalid_union' ? issue.errors.flat() : [issue]));
  const issue = flat.find((item) => item.path.length > 0) ?? flat.at(-1) ?? error.issues[0];
  if (issue === undefined) return 'unknown shape';
  return issue.path.length === 0 ? issue.message : `${issue.path.join('.')}: ${issue.message}`;
}

/** Bytes that a string takes as UTF-8. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit >= 0xd800 && unit < 0xdc00) {
      bytes += 4;
      index += 1;
    } else bytes += 3;
  }
  return bytes;
}

/** The reply of a request that nobody answered, as pi writes it: it was aborted, or failed, before it was sent. */
export function unansweredReply(
  modelRef: string,
  { stopReason, errorMessage, timestamp }: Pick<AssistantMessage, 'stopReason' | 'errorMessage' | 'timestamp'>,
): AssistantMessage {
  const slash = modelRef.indexOf('/');
  return {
    role: 'assistant',
    content: [{ type: 'text', text: '' }],
    api: 'everturn',
    provider: slash < 0 ? modelRef : modelRef.slice(0, slash),
    model: modelRef.slice(slash + 1),
    usage: emptyUsage(),
    stopReason,
    ...(errorMessage === undefined ? {} : { errorMessage }),
    timestamp,
  };
}

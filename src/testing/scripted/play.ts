import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Api,
  type AssistantMessage,
  type AssistantMessageEventStream,
  type Model,
  type SimpleStreamOptions,
  type ToolCall,
  ToolCallArgumentsStream,
  type Usage,
} from '@earendil-works/pi-ai';
import type { ScriptedReply, ScriptedRequest } from './types.ts';

/** How often a held stream looks for its file. */
const pollMs = 10;

export interface Performance {
  reply: ScriptedReply;
  request: ScriptedRequest;
  model: Model<Api>;
  options: SimpleStreamOptions;
  stream: AssistantMessageEventStream;
}

/** Thrown inside a performance when the script says that the stream breaks here. */
class Broken extends Error {}

/**
 * Streams a reply in pi-ai's event protocol. It always ends the stream: with the reply, with the scripted error, or as
 * aborted with what had come so far, at whatever place the signal fires.
 */
export async function play(performance: Performance): Promise<void> {
  const { model, options, stream } = performance;
  const partial = emptyMessage(model);
  const end = (reason: 'error' | 'aborted', errorMessage: string) => {
    const error: AssistantMessage = { ...partial, stopReason: reason, errorMessage };
    stream.push({ type: 'error', reason, error });
    stream.end(error);
  };
  try {
    await perform(performance, partial);
  } catch (error) {
    if (options.signal?.aborted) end('aborted', 'Request was aborted');
    else end('error', error instanceof Error ? error.message : String(error));
  }
}

async function perform(performance: Performance, partial: AssistantMessage): Promise<void> {
  const { reply, request, model, options, stream } = performance;
  const { signal } = options;
  signal?.throwIfAborted();
  const failing = isFailing(performance);
  if (failing && reply.hangForever) await untilAborted(signal);
  const failure = reply.error ?? '503 service unavailable';
  if (failing && reply.breakAfterChunks === undefined) {
    if (reply.errorStatus !== undefined) {
      await options.onResponse?.({ status: reply.errorStatus, headers: reply.errorHeaders ?? {} }, model);
    }
    throw new Broken(failure);
  }
  await options.onResponse?.({ status: 200, headers: {} }, model);

  let sent = 0;
  /** Everything that may happen between two chunks. */
  const reachChunk = async () => {
    if (failing && sent === reply.breakAfterChunks) throw new Broken(failure);
    if (reply.holdUntilFile !== undefined && sent === (reply.holdAfterChunks ?? 0))
      await hold(reply.holdUntilFile, signal);
    if (reply.chunkDelayMs) await delay(reply.chunkDelayMs, undefined, signal ? { signal } : {});
    // A real stream comes in pieces: whoever waits for this process gets its turn between two of them.
    else await delay(0);
    signal?.throwIfAborted();
    sent += 1;
  };
  // Real providers begin to answer when there is a first token.
  if (reply.holdUntilFile !== undefined && (reply.holdAfterChunks ?? 0) === 0) await hold(reply.holdUntilFile, signal);
  signal?.throwIfAborted();
  stream.push({ type: 'start', partial });
  await sendContent(performance, partial, reachChunk);
  if (failing && reply.breakAfterChunks !== undefined) throw new Broken(failure);
  if (reply.holdUntilFile !== undefined && reply.holdAfterChunks === 'all') await hold(reply.holdUntilFile, signal);
  signal?.throwIfAborted();

  const planned = reply.stopReason === 'error' ? undefined : reply.stopReason;
  const reason = planned ?? (reply.calls?.length ? 'toolUse' : 'stop');
  const message: AssistantMessage = { ...partial, stopReason: reason, usage: usageOf(reply, request, partial) };
  stream.push({ type: 'done', reason, message });
  stream.end(message);
}

function isFailing({ reply, request }: Performance): boolean {
  const asked =
    reply.error !== undefined ||
    reply.stopReason === 'error' ||
    reply.breakAfterChunks !== undefined ||
    reply.hangForever === true ||
    reply.failTimes !== undefined;
  return asked && request.attempt <= (reply.failTimes ?? Number.POSITIVE_INFINITY);
}

async function sendContent(
  { reply, request, stream }: Performance,
  partial: AssistantMessage,
  reachChunk: () => Promise<void>,
): Promise<void> {
  const count = reply.chunks ?? 3;
  if (reply.thinking !== undefined) {
    const block = { type: 'thinking' as const, thinking: '' };
    const contentIndex = partial.content.push(block) - 1;
    stream.push({ type: 'thinking_start', contentIndex, partial });
    for (const delta of pieces(reply.thinking, count)) {
      await reachChunk();
      block.thinking += delta;
      stream.push({ type: 'thinking_delta', contentIndex, delta, partial });
    }
    stream.push({ type: 'thinking_end', contentIndex, content: block.thinking, partial });
  }
  if (reply.text !== undefined) {
    const block = { type: 'text' as const, text: '' };
    const contentIndex = partial.content.push(block) - 1;
    stream.push({ type: 'text_start', contentIndex, partial });
    for (const delta of pieces(reply.text, count)) {
      await reachChunk();
      block.text += delta;
      stream.push({ type: 'text_delta', contentIndex, delta, partial });
    }
    stream.push({ type: 'text_end', contentIndex, content: block.text, partial });
  }
  for (const [index, call] of (reply.calls ?? []).entries()) {
    const id = call.id ?? `call-${request.reply}-${index}`;
    const block: ToolCall = { type: 'toolCall', id, name: call.name, arguments: {} };
    const contentIndex = partial.content.push(block) - 1;
    stream.push({ type: 'toolcall_start', contentIndex, partial });
    // Partial arguments come from the parser that real providers use, so readers see them grow in the same way.
    const parser = new ToolCallArgumentsStream();
    for (const delta of pieces(JSON.stringify(call.args ?? {}), count)) {
      await reachChunk();
      block.arguments = parser.append(delta);
      stream.push({ type: 'toolcall_delta', contentIndex, delta, partial });
    }
    block.arguments = call.args ?? {};
    stream.push({ type: 'toolcall_end', contentIndex, toolCall: block, partial });
  }
}

/** The text in at most `count` pieces of about the same length; none when it is empty. */
function pieces(text: string, count: number): string[] {
  const characters = [...text];
  const number = Math.max(1, Math.min(count, characters.length));
  const size = Math.ceil(characters.length / number);
  const all: string[] = [];
  for (let from = 0; from < characters.length; from += size) all.push(characters.slice(from, from + size).join(''));
  return all;
}

async function hold(file: string, signal: AbortSignal | undefined): Promise<void> {
  const mark = `${file}.waiting`;
  writeFileSync(mark, String(process.pid));
  try {
    while (!existsSync(file)) await delay(pollMs, undefined, signal ? { signal } : {});
  } finally {
    rmSync(mark, { force: true });
  }
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function emptyMessage(model: Model<Api>): AssistantMessage {
  return {
    role: 'assistant',
    content: [],
    api: model.api,
    provider: model.provider,
    model: model.id,
    usage: usage({}),
    stopReason: 'pending',
    timestamp: Date.now(),
  };
}

function usageOf(reply: ScriptedReply, request: ScriptedRequest, message: AssistantMessage): Usage {
  const asked = request.systemPrompt.length + JSON.stringify(request.messages.map(contentOf)).length;
  const estimate = { input: Math.ceil(asked / 4), output: Math.ceil(JSON.stringify(message.content).length / 4) };
  return usage({ ...estimate, ...reply.usage });
}

function contentOf(message: { content?: unknown }): unknown {
  return message.content;
}

function usage({
  input = 0,
  output = 0,
  cacheRead = 0,
  cacheWrite = 0,
  cost = 0,
}: NonNullable<ScriptedReply['usage']>): Usage {
  const totalTokens = input + output + cacheRead + cacheWrite;
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: cost },
  };
}

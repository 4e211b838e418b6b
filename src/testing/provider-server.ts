import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Json } from '../common/json.ts';
import { anthropicWire } from './wire/anthropic.ts';
import { completionsWire } from './wire/openai-completions.ts';
import { responsesWire } from './wire/openai-responses.ts';
import type { ProviderReply, ReplyFault, Wire, WireFormat } from './wire/types.ts';

export type { ProviderReply, ReplyBlock, ReplyError, ReplyFault, ReplyUsage, Wire } from './wire/types.ts';

/** How a request's answer ended. `client-closed`: the client went away before it was complete. */
export type RequestEnd = 'complete' | 'client-closed' | 'server-broke';

/** One recorded request. It is in the list from the moment its body was read. */
export interface RecordedRequest {
  /** Its place in `requests`, from 0. */
  index: number;
  wire: Wire;
  path: string;
  headers: IncomingHttpHeaders;
  /** The parsed JSON body. */
  body: { [key: string]: Json };
  /** Settles when the answer is over, however it ended. */
  ended: Promise<RequestEnd>;
  /** Milliseconds since the epoch at which the client closed the connection early; undefined if it did not. */
  clientClosedAt?: number;
}

export interface ProviderServerOptions {
  /** Decides the answer from the request and its index, from 0. If it throws, the client gets a 500 with the text. */
  reply(request: RecordedRequest, index: number): ProviderReply | Promise<ProviderReply>;
}

export interface ProviderServer {
  /** 'http://127.0.0.1:<port>', without a path: what Anthropic's SDK takes as its base URL. */
  origin: string;
  /** The base URL as clients of that wire format want it. */
  baseUrl(wire: Wire): string;
  /** Everything that was asked, in order of arrival. */
  requests: readonly RecordedRequest[];
  /** Resolves with request number `index` (default: 0) once it arrived. */
  request(index?: number): Promise<RecordedRequest>;
  /** Stops listening and cuts what is open, stalled answers included. */
  close(): Promise<void>;
}

const formats: Record<string, { wire: Wire; format: WireFormat }> = {
  '/v1/messages': { wire: 'anthropic', format: anthropicWire },
  '/v1/chat/completions': { wire: 'openai-completions', format: completionsWire },
  '/v1/responses': { wire: 'openai-responses', format: responsesWire },
};

/**
 * A model provider on a free loopback port, for tests: it speaks the real streaming formats of Anthropic Messages,
 * OpenAI chat completions and OpenAI responses, answers as the script says, and records what clients did. Only
 * streamed requests are answered (`stream: true`); other paths get a 404.
 */
export async function startProviderServer(options: ProviderServerOptions): Promise<ProviderServer> {
  const requests: RecordedRequest[] = [];
  const waiting: { index: number; resolve(request: RecordedRequest): void }[] = [];
  const arrived = (request: RecordedRequest): void => {
    requests.push(request);
    for (const waiter of waiting.filter(({ index }) => index === request.index)) waiter.resolve(request);
  };
  const server = createServer((incoming, response) => {
    void handle(incoming, response, options, requests, arrived);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    baseUrl: (wire) => (wire === 'anthropic' ? origin : `${origin}/v1`),
    requests,
    request(index = 0) {
      const known = requests[index];
      if (known !== undefined) return Promise.resolve(known);
      return new Promise((resolve) => waiting.push({ index, resolve }));
    },
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

async function handle(
  incoming: IncomingMessage,
  response: ServerResponse,
  options: ProviderServerOptions,
  requests: RecordedRequest[],
  arrived: (request: RecordedRequest) => void,
): Promise<void> {
  const closed = new AbortController();
  const { promise: ended, resolve: end } = Promise.withResolvers<RequestEnd>();
  const path = incoming.url ?? '/';
  const known = formats[path.split('?')[0] ?? ''];
  const body = await readJson(incoming);
  if (known === undefined || body === undefined || incoming.method !== 'POST') {
    sendJson(response, known === undefined ? 404 : 400, '{"error":{"message":"unknown path or bad JSON"}}');
    return;
  }
  const { wire, format } = known;
  const request: RecordedRequest = { index: requests.length, wire, path, headers: incoming.headers, body, ended };
  response.on('close', () => {
    if (!response.writableFinished && !closed.signal.aborted) request.clientClosedAt = Date.now();
    end(response.writableFinished ? 'complete' : closed.signal.aborted ? 'server-broke' : 'client-closed');
    closed.abort();
  });
  arrived(request);
  const breakOff = (): void => {
    closed.abort();
    response.destroy();
  };
  try {
    const reply = await options.reply(request, request.index);
    if (reply.failure !== undefined) {
      const { status, headers, ...rest } = reply.failure;
      sendJson(response, status, 'body' in rest ? rest.body : format.errorBody(rest.error), headers);
    } else if (body.stream !== true) {
      sendJson(response, 400, format.errorBody({ message: 'This server answers streamed requests only' }));
    } else {
      await play(reply, format, request, response, closed.signal, breakOff);
    }
  } catch (error) {
    if (closed.signal.aborted) return;
    if (response.headersSent) breakOff();
    else sendJson(response, 500, format.errorBody({ message: `The reply script failed: ${String(error)}` }));
  }
}

/** Sends the frames one by one. Rejects with an abort error once the client is gone. */
async function play(
  reply: ProviderReply,
  format: WireFormat,
  request: RecordedRequest,
  response: ServerResponse,
  closed: AbortSignal,
  breakOff: () => void,
): Promise<void> {
  const { fault, delayMs = 0 } = reply;
  if (fault?.after === 'head') {
    if (fault.kind === 'break') breakOff();
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.flushHeaders();
  const model = typeof request.body.model === 'string' ? request.body.model : 'unknown';
  const frames = format.frames(reply, model, `reply_${request.index}`);
  const firstDelta = frames.findIndex((frame) => frame.delta);
  const first = firstDelta === -1 ? 1 : firstDelta;
  let sent = 0;
  for (const [position, frame] of frames.entries()) {
    // The frames that open the answer and its first block go out even if the fault comes after no delta at all.
    if (fault !== undefined && position >= first && sent >= Number(fault.after))
      return fail(fault, format, response, breakOff);
    if (frame.delta && delayMs > 0) await sleep(delayMs, undefined, { signal: closed });
    closed.throwIfAborted();
    await write(response, frame.text);
    if (frame.delta) sent += 1;
  }
  if (fault !== undefined) return fail(fault, format, response, breakOff);
  response.end();
}

function fail(fault: ReplyFault, format: WireFormat, response: ServerResponse, breakOff: () => void): void {
  if (fault.kind === 'break') breakOff();
  else if (fault.kind === 'end') response.end();
  else if (fault.kind === 'malformed') response.write(format.malformedFrame);
  else if (fault.kind === 'error') response.end(format.errorFrame(fault.error));
}

/** Resolves when the bytes were handed to the kernel, so that a socket broken next does not lose them. */
function write(response: ServerResponse, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    response.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

async function readJson(incoming: IncomingMessage): Promise<{ [key: string]: Json } | undefined> {
  let text = '';
  try {
    for await (const piece of incoming.setEncoding('utf8')) text += piece;
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as { [key: string]: Json }) : undefined;
  } catch {
    return undefined;
  }
}

function sendJson(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(body);
}

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { AgentClient } from '../../src/client/index.ts';

// A process whose client is closed while a call of it waits for its next try, the server being away. Says how the call
// ended, and exits with 0 unless something is thrown where nobody can catch it.

const [server = '', store = ''] = process.argv.slice(2);
const [host = '', port = ''] = server.split(':');
const sockets = new Set<Socket>();
const proxy = createServer((socket) => {
  const upstream = connect(Number(port), host);
  for (const each of [socket, upstream]) {
    sockets.add(each);
    each.on('error', () => {});
  }
  socket.pipe(upstream).pipe(socket);
}).listen(0, '127.0.0.1');
await once(proxy, 'listening');

const { port: ownPort } = proxy.address() as { port: number };
const client = await AgentClient.connect({ address: `127.0.0.1:${ownPort}`, store });
proxy.close();
for (const socket of sockets) socket.destroy();
const calls = [client.session('nobody', { agent: 'any' }).status(), client.session('else', { agent: 'any' }).status()];
const ended = Promise.allSettled(calls);
// Long enough for the first tries to have failed, and for the next ones to wait for their time.
await delay(400);
await client.close();
for (const { status } of await ended) process.stdout.write(`${status}\n`);
// The retries of Temporal's client wait for 10 s at most; the ones of this call are among the first.
await delay(2_000);

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { AgentClient } from '../../src/client/index.ts';
import { waitFor } from '../support/wait-for.ts';

// A process whose client is closed while a call of it waits for its next try, the server being away. Says how the call
// ended, and exits with 0 unless something is thrown where nobody can catch it.

const [server = '', store = ''] = process.argv.slice(2);
const [host = '', port = ''] = server.split(':');
const sockets = new Set<Socket>();
let cut = false;
let refused = 0;
const proxy = createServer((socket) => {
  if (cut) {
    refused += 1;
    socket.destroy();
    return;
  }
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
cut = true;
for (const socket of sockets) socket.destroy();
const calls = [client.session('nobody', { agent: 'any' }).status(), client.session('else', { agent: 'any' }).status()];
const ended = Promise.allSettled(calls);
// A try to connect again has failed: from now on each try of a call fails at once, and the next one waits for its time.
await waitFor(() => refused > 0, { what: 'a try to connect again' });
await client.close();
// A call ends when the timer of its next try has fired: without the guard that is where the process ends.
for (const { status } of await ended) process.stdout.write(`${status}\n`);
proxy.close();

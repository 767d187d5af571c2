// What a handler throws takes Node's own way, as without us; the queue goes on.
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { dispatchSnapshot, protect } from '../../src/index.js';

const caught: string[] = [];
process.on('uncaughtException', (error) => caught.push(error.message));

const ask = (n: number): string => `GET /${n} HTTP/1.1\r\nhost: x\r\n\r\n`;

const server = createServer((req, res) => {
  if (req.url === '/1') throw new Error(`thrown by ${req.url}`);
  res.end(`answer to ${req.url}`);
});
protect(server, { limit: 1_000 });
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  let received = '';
  const sockets = Array.from({ length: 4 }, () => {
    const socket = connect(port, '127.0.0.1', () => {
      if (++connected === 4) for (const [n, each] of sockets.entries()) each.write(ask(n));
    });
    socket.on('data', (chunk) => {
      received += chunk.toString();
      if ([0, 2, 3].every((n) => received.includes(`answer to /${n}`))) end();
    });
    return socket;
  });
  let connected = 0;
  function end(): void {
    console.log(`${caught.join()}; queued ${dispatchSnapshot().queued >= 3}`);
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  }
});

// Serves some requests through the queue; once the server is closed the process must end by itself.
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dispatchSnapshot, protect } from '../../src/index.js';

const server = createServer((_req, res) => res.end('ok'));
protect(server, { limit: 1_000 });
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  let left = 50;
  for (let i = 0; i < 50; i++) {
    get({ port, host: '127.0.0.1', agent: false }, (res) => {
      res.resume().on('end', () => {
        if (--left > 0) return;
        server.close(() => console.log(`queued ${dispatchSnapshot().queued > 0}`));
      });
    });
  }
});

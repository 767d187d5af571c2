import { request } from 'node:http';
import { connect, type Socket } from 'node:net';

/** Clients as they are on a bad day. Each call makes one of a kind, which ends by itself. */
export const ROUGH_CLIENTS: readonly ((port: number) => void)[] = [
  // leaves in the middle of the wait
  (port) => hangUpAfter(port, 'GET /work HTTP/1.1\r\nhost: a\r\n\r\n', 4),
  // resets after asking for a lot
  (port) => {
    const socket = hangUpAfter(port, 'GET /big HTTP/1.1\r\nhost: a\r\n\r\n', 200);
    socket.once('data', () => socket.resetAndDestroy());
  },
  // never reads
  (port) => hangUpAfter(port, 'GET /big HTTP/1.1\r\nhost: a\r\n\r\n', 3000).pause(),
  // trickles an upload, and gives up
  (port) => {
    const socket = hangUpAfter(
      port,
      'POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n',
      2000,
    );
    const timer = setInterval(() => socket.write('x'), 100);
    socket.once('close', () => clearInterval(timer));
  },
  // sends two at once on one connection
  (port) => hangUpAfter(port, 'GET /work HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(2), 500),
  // sends nonsense
  (port) => hangUpAfter(port, 'BREW /work HTTP/9.9\r\n\r\n', 100),
  // has no time left
  (port) =>
    hangUpAfter(port, 'GET /work HTTP/1.1\r\nhost: a\r\nx-request-timeout-ms: 0\r\n\r\n', 100),
  // meets an error of the handler's
  (port) => hangUpAfter(port, 'GET /throws HTTP/1.1\r\nhost: a\r\n\r\n', 100),
  // uploads in good order
  (port) => {
    const req = request({ port, host: '127.0.0.1', method: 'POST', path: '/upload' }, (res) =>
      res.resume(),
    );
    req.on('error', () => undefined);
    req.end(Buffer.alloc(50_000));
  },
  // watches the live page for a moment
  (port) => hangUpAfter(port, 'GET /elimit/events HTTP/1.1\r\nhost: a\r\n\r\n', 1500),
];

function hangUpAfter(port: number, text: string, ms: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(text));
  socket.on('error', () => undefined);
  socket.resume();
  const timer = setTimeout(() => socket.destroy(), ms);
  socket.once('close', () => clearTimeout(timer));
  return socket;
}

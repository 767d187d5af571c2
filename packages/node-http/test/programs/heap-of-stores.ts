// 20 000 requests, each with an AsyncLocalStorage store of 100 KB, through the queue. Needs --expose-gc.
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createGuard } from '@elimit/core';
import { arrivalOf, dispatch, dispatchSnapshot, writeRejection } from '../../src/index.js';

const REQUESTS = 20_000;
const CONNECTIONS = 40;
/** 12 800 doubles of 8 bytes: each copy takes 100 KB of the heap. */
const BALLAST = Array.from({ length: 12_800 }, () => 0.5);
const collect = (globalThis as { gc?: () => void }).gc;
if (collect === undefined) throw new Error('needs --expose-gc');

const store = new AsyncLocalStorage<{ id: string; ballast: number[] }>();
const guard = createGuard({ limit: 1_000 });
let wrong = 0;
const server = createServer((req, res) => {
  const id = req.url ?? '';
  store.run({ id, ballast: BALLAST.slice() }, () => {
    const entry = guard.tryAcquire({ arrivedUs: arrivalOf(req) });
    if (!entry.admitted) {
      writeRejection(res, entry);
      return;
    }
    res.once('prefinish', () => entry.release('success'));
    const run = (): void => {
      if (store.getStore()?.id !== id) wrong++;
      res.end('ok');
    };
    dispatch(req, res, entry, run, (no) => writeRejection(res, no));
  });
});

function usedMb(): number {
  collect?.();
  return process.memoryUsage().heapUsed / 1e6;
}

async function askAll(port: number, count: number): Promise<void> {
  let sent = 0;
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      const next = (): void => {
        if (sent >= count) socket.end();
        else socket.write(`GET /${sent++} HTTP/1.1\r\nhost: x\r\n\r\n`);
      };
      socket
        .on('connect', next)
        .on('data', next)
        .on('close', () => resolve());
    });
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
}

server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
await askAll(port, 2_000);
const beforeMb = usedMb();
await askAll(port, REQUESTS);
const grownMb = usedMb() - beforeMb;
const { queued, atOnce } = dispatchSnapshot();
console.log(JSON.stringify({ grownMb, wrong, queued, atOnce, inflight: guard.inflight }));
server.close();

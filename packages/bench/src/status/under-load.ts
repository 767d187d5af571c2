// How quickly the status page answers while its service is offered five times what it can do.
// node --conditions=@elimit/source --import tsx packages/bench/src/status/under-load.ts
import { request } from 'node:http';
import { performance } from 'node:perf_hooks';
import { Child, loadFromChild, SERVER_CORE } from '../http/child.js';
import { IDEAL_PER_SECOND } from '../http/handlers.js';

const SECONDS = 8;
const TIMES = 5;
/** A person waits this long without a thought. */
const MOST_MS = 500;

const service = new Child(
  new URL('../demo/service.ts', import.meta.url),
  ['cpu', 'auto', '0'],
  SERVER_CORE,
);
const { port } = await service.ask<{ port: number }>();

function ask(path: string): Promise<{ status: number; tookMs: number }> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    const req = request({ port, host: '127.0.0.1', path, agent: false }, (res) => {
      res.resume();
      res.on('end', () =>
        resolve({ status: res.statusCode ?? 0, tookMs: performance.now() - startMs }),
      );
    });
    req.on('error', reject);
    req.end();
  });
}

const load = loadFromChild({
  port,
  path: '/cpu',
  client: 'hangUp',
  rate: TIMES * IDEAL_PER_SECOND.cpu,
  warmUpMs: 1000,
  durationMs: SECONDS * 1000,
});
const took: number[] = [];
let failed = 0;
const endMs = performance.now() + SECONDS * 1000;
while (performance.now() < endMs) {
  const { status, tookMs } = await ask('/elimit/status');
  if (status === 200) took.push(tookMs);
  else failed++;
  await new Promise((resolve) => setTimeout(resolve, 50));
}
const result = await load;
await service.close();
took.sort((a, b) => a - b);
const at = (ratio: number) => Math.round(took[Math.floor(took.length * ratio)] ?? Number.NaN);
const ok = failed === 0 && at(0.99) <= MOST_MS;
console.log(
  `${TIMES} x overload: ${result.inTime} in time, ${result.refused} refused, ${result.late} late; ` +
    `status page asked ${took.length + failed} times: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${failed} not 200: ${ok ? 'ok' : 'SHORT'}`,
);
process.exitCode = ok ? 0 : 1;

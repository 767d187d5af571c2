// The process that is soaked: one of everything, in one service. `service.ts REDIS_PORT NODE_PORT…`
// Answers 'measure' with what must be back at its start once nobody calls any more.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createChannel } from '@elimit/client';
import { createCircuitBreaker, processRegistry } from '@elimit/core';
import { createGuards, limit, rateLimit } from '@elimit/express';
import { createFetch } from '@elimit/fetch';
import { redisStore } from '@elimit/redis';
import { status } from '@elimit/status';
import express, { raw } from 'express';
import { Redis } from 'ioredis';

/** What is compared before and after. */
export interface Measure {
  readonly heapMb: number;
  /** Kinds of open handles and how many there are of each; sockets of clients are gone by then. */
  readonly handles: Readonly<Record<string, number>>;
  /** In flight over all guards and endpoints. */
  readonly inflight: number;
  /** Warnings and errors that nobody handled, since the start. */
  readonly complaints: readonly string[];
  readonly admitted: number;
  readonly refused: number;
  /** How often an endpoint was isolated. */
  readonly isolations: number;
}

const complaints: string[] = [];
process.on('warning', (warning) => complaints.push(`${warning.name}: ${warning.message}`));

const [redisPort = '', ...nodePorts] = process.argv.slice(2);
const guards = createGuards({
  serverMaxConcurrency: 500,
  methods: {
    'GET /work': 'auto',
    'GET /cpu': { timeoutMs: 300, maxConcurrency: 50 },
    'GET /big': 20,
    'POST /upload': 20,
    'GET /out': 'auto',
  },
});
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const channel = createChannel({
  nodes: nodePorts.map((port) => `http://127.0.0.1:${port}`),
  timeoutMs: 400,
  tryTimeoutMs: 150,
  connectTimeoutMs: 100,
  healthCheck: { intervalMs: 500, timeoutMs: 200 },
});
const outbound = createFetch(channel);
const flaky = createCircuitBreaker({ name: 'flaky', minCalls: 5 });

const app = express();
app.use('/elimit', status());
if (redisPort !== '') {
  const redis = new Redis({ port: Number(redisPort), host: '127.0.0.1' });
  redis.on('error', () => undefined); // it is killed on purpose
  app.use(
    '/limited',
    rateLimit({ rate: 200, burst: 400, name: 'per user', store: redisStore(redis) }),
  );
}
app.get('/limited', (_req, res) => res.end('ok'));
app.get('/work', limit(guards), async (_req, res) => {
  await sleep(10);
  res.end('ok');
});
app.get('/cpu', limit(guards), (_req, res) => {
  const endMs = performance.now() + 3;
  while (performance.now() < endMs);
  res.end('ok');
});
app.get('/big', limit(guards), (_req, res) => {
  res.end(Buffer.alloc(4_000_000));
});
app.post('/upload', limit(guards), raw({ limit: '10mb', type: () => true }), (req, res) => {
  res.json({ bytes: (req.body as Buffer).length });
});
app.get('/out', limit(guards), async (_req, res) => {
  const answer = await flaky.execute(({ signal }) => outbound('/', { signal }));
  res.status(answer.status).end(await answer.text());
});
app.get('/throws', limit(guards), () => {
  throw new Error('on purpose');
});
app.use(
  (_error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
    if (!res.headersSent) res.status(502).end('failed');
  },
);
const server = app.listen(0, '127.0.0.1', 1024);
await once(server, 'listening');
// from here on: an error at the start should end it
process.on('unhandledRejection', (reason) => complaints.push(`unhandled: ${String(reason)}`));
process.on('uncaughtException', (error) => complaints.push(`uncaught: ${String(error)}`));
process.send?.({ port: (server.address() as AddressInfo).port });

process.on('message', () => {
  void measure().then((answer) => process.send?.(answer));
});
process.on('disconnect', () => process.exit());

async function measure(): Promise<Measure> {
  const { gc } = globalThis;
  for (let i = 0; i < 4; i++) {
    await sleep(50);
    gc?.();
  }
  const handles: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) handles[kind] = (handles[kind] ?? 0) + 1;
  const snapshots = processRegistry()
    .sources()
    .map((source) => source.snapshot());
  let inflight = 0;
  let admitted = 0;
  let refused = 0;
  let isolations = 0;
  for (const snapshot of snapshots) {
    if (snapshot.type === 'guard') {
      inflight += snapshot.inflight;
      if (snapshot.name === 'server') continue;
      admitted += snapshot.admitted;
      refused += Object.values(snapshot.rejected).reduce((sum, each) => sum + each, 0);
    } else if (snapshot.type === 'endpoint') {
      inflight += snapshot.inflight;
      isolations += snapshot.nBreak;
    }
  }
  const heapMb = Math.round(process.memoryUsage().heapUsed / 1e5) / 10;
  return { heapMb, handles, inflight, complaints, admitted, refused, isolations };
}

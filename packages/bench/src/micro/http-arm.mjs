// One arm of http-arms.ts: a server. `node http-arm.mjs NAME` says its port through IPC, then answers each message
// with what it has used so far. Plain JavaScript, so that plain node runs it on the built packages.
import { createServer } from 'node:http';
import { createGuard, limit, protect } from '@elimit/express';
import express from 'express';
import { rateLimit } from 'express-rate-limit';

const registry = false;

function app(...middleware) {
  const server = express();
  for (const each of middleware) server.use(each);
  server.get('/', (_req, res) => {
    res.json({ hello: 'world' });
  });
  return createServer(server);
}

function protectedApp(options) {
  const server = app();
  protect(server, options);
  return server;
}

/** A guard whose only slot is taken. */
function full() {
  const guard = createGuard({ limit: 1, registry });
  guard.tryAcquire();
  return guard;
}

const arms = {
  bare: () => app(),
  'express-rate-limit': () => app(rateLimit({ limit: 1e9, windowMs: 3_600_000 })),
  "limit('auto')": () => app(limit('auto', { registry })),
  // stamps the request and keeps its shape, and does nothing else: what is left is what limiting costs
  'limit, all skipped': () => app(limit('auto', { registry, skip: () => true })),
  'protect(server)': () => protectedApp({ registry }),
  'refused by limit': () => app(limit(full())),
  'refused by protect(server)': () => protectedApp({ limit: full() }),
};

const server = arms[process.argv[2]]();
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', ({ collect }) => {
  if (collect) globalThis.gc();
  const { user, system } = process.cpuUsage();
  process.send({ cpuUs: user + system, heapBytes: process.memoryUsage().heapUsed });
});
process.on('disconnect', () => process.exit());

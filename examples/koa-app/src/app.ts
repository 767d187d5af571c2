import { setTimeout as sleep } from 'node:timers/promises';
import { createGuards, type Guards, limit, rateLimit, signalOf } from '@elimit/koa';
import { Router } from '@koa/router';
import Koa from 'koa';

/** One guard for each route, and a cap over all of them. */
export function createLimits(): Guards {
  return createGuards({
    serverMaxConcurrency: 500,
    methodMaxConcurrency: 'auto',
    methods: { 'GET /search': { timeoutMs: 300, maxConcurrency: 100 }, 'GET /report': 2 },
  });
}

/** A few handlers, each behind its own limit. */
export function createApp(guards: Guards = createLimits()): Koa {
  const app = new Koa();

  // in front of all limits: always answers
  const open = new Router();
  open.get('/healthz', (ctx) => {
    ctx.body = 'well';
  });
  open.get('/limits', (ctx) => {
    const all = guards.names().map((name) => guards.guardOf(name));
    ctx.body = [guards.server, ...all].map((guard) => guard.snapshot());
  });

  const router = new Router();
  router.use(limit(guards)); // by the route that each request is led to

  // waits for something else, as most handlers do
  router.get('/search', async (ctx) => {
    await sleep(20);
    ctx.body = { found: ctx.query.q ?? null };
  });

  // burns the processor: the limit learns that it has only one
  router.get('/thumbnail/:id', (ctx) => {
    for (const until = performance.now() + 5; performance.now() < until; );
    ctx.body = { id: ctx.params.id };
  });

  // slow, and stops when nobody waits for it any more
  router.get('/report', async (ctx) => {
    const signal = signalOf(ctx);
    await sleep(2000, undefined, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    ctx.body = { rows: 1000 };
  });

  // three at once, then one each 2 s, for each client
  router.get('/mail', rateLimit({ rate: 0.5, burst: 3, name: 'mail' }), (ctx) => {
    ctx.body = { sent: true };
  });

  app.use(open.routes());
  app.use(router.routes());
  return app;
}

import { setTimeout as sleep } from 'node:timers/promises';
import { createGuards, type Guards, limit, signalOf } from '@elimit/express';
import express, { type ErrorRequestHandler, type Express } from 'express';

/** One guard for each route, and a cap over all of them. */
export function createLimits(): Guards {
  return createGuards({
    serverMaxConcurrency: 500,
    methodMaxConcurrency: 'auto',
    methods: {
      'GET /search': { timeoutMs: 300, maxConcurrency: 100 },
      'GET /report': 2,
    },
  });
}

/** A small shop of handlers, each behind its own limit. */
export function createApp(guards: Guards = createLimits()): Express {
  const app = express();

  // in front of all limits: always answers
  app.get('/healthz', (_req, res) => void res.send('well'));
  app.get('/limits', (_req, res) => {
    const names = [...guards.names()];
    res.json([guards.server.snapshot(), ...names.map((name) => guards.guardOf(name).snapshot())]);
  });

  // waits for something else, as most handlers do
  app.get('/search', limit(guards), async (req, res) => {
    await sleep(20);
    res.json({ found: req.query.q ?? null });
  });

  // burns the processor: the limit learns that it has only one
  app.get('/thumbnail/:id', limit(guards), (req, res) => {
    for (const until = performance.now() + 5; performance.now() < until; );
    res.json({ id: req.params.id });
  });

  // slow, and stops when nobody waits for it any more
  app.get('/report', limit(guards), async (req, res) => {
    await sleep(2000, undefined, { signal: signalOf(req) });
    res.json({ rows: 1000 });
  });

  // an event stream leaves the limiter as it starts
  app.get('/events', limit(guards), (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    const timer = setInterval(() => res.write(`data: ${Date.now()}\n\n`), 1000);
    res.write('data: hello\n\n');
    res.once('close', () => clearInterval(timer));
  });

  // the limit stands in front of the parser: a refused body is not parsed
  app.post('/orders', limit(guards), express.json(), (req, res) => {
    res.status(201).json({ order: req.body as unknown });
  });

  app.use(endQuietly);

  return app;
}

/** Nobody reads the answer to a client that has hung up, and that it did is no error of ours. */
const endQuietly: ErrorRequestHandler = (error: unknown, req, res, next) => {
  if (signalOf(req).aborted) res.end();
  else next(error);
};

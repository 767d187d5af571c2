import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRateLimiter, type ElimitEvent } from '@elimit/core';
import { VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { type RateLimitOptions, rateLimit } from '../../src/index.js';
import { EXPRESS } from '../harness.js';

let server: Server | undefined;
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
});

async function serve(listener: RequestListener): Promise<(path?: string) => Promise<number>> {
  server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return async (path = '/') => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    await answer.text();
    return answer.status;
  };
}

const ok: RequestHandler = (_req, res) => void res.send('ok');

describe.each(EXPRESS)('express $version, one limiter on two mounts', ({ express }) => {
  it.each([
    { it: 'skipped by the first, counts at the second', first: () => true, second: () => false },
    { it: 'skipped by the second, counted at the first', first: () => false, second: () => true },
    {
      it: 'skipped by the first in time',
      first: () => Promise.resolve(true),
      second: undefined,
    },
  ])('a request $it', async ({ first, second }) => {
    const events: ElimitEvent[] = [];
    const onEvent = (event: ElimitEvent) => void events.push(event);
    const clock = new VirtualClock();
    const limiter = createRateLimiter({ limit: 2, clock, timers: clock, registry: false });
    const app = express();
    app.use(rateLimit({ limiter, skip: first, onEvent }));
    app.use(rateLimit({ limiter, skip: second, onEvent }));
    app.use(ok);
    const get = await serve(app);
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push(await get());
    expect(statuses).toEqual([200, 200, 429, 429]);
    expect(limiter.tokens('127.0.0.1')).toBe(0);
    expect(events).toEqual([]);
  });

  it('a request that the first could not count is counted by the second', async () => {
    const limiter = createRateLimiter({ limit: 1, registry: false });
    const app = express();
    const noKey = () => Promise.reject(new Error('no key'));
    app.use(rateLimit({ limiter, keyGenerator: noKey }));
    const goOn: ErrorRequestHandler = (_error, _req, _res, next) => next();
    app.use(goOn);
    app.use(rateLimit({ limiter }));
    app.use(ok);
    const get = await serve(app);
    expect([await get(), await get()]).toEqual([200, 429]);
  });
});

describe.each(EXPRESS)('express $version, a dry run', ({ express }) => {
  it.each([false, true])(
    'gives back only what was taken, so that it counts as the real run: %p',
    async (dryRun) => {
      const clock = new VirtualClock();
      const limiter = createRateLimiter({ limit: 3, dryRun, clock, registry: false });
      const app = express();
      app.use(rateLimit({ limiter, skipSuccessfulRequests: true }));
      app.get('/failed', (_req, res) => void res.status(401).send('no'));
      app.get('/ok', ok);
      const get = await serve(app);
      for (let i = 0; i < 3; i++) await get('/failed');
      for (let i = 0; i < 20; i++) await get('/ok');
      for (let i = 0; i < 10; i++) await get('/failed');
      const { granted, rejected, wouldReject } = limiter.snapshot();
      expect([granted, rejected + wouldReject]).toEqual([3, 30]);
      expect(limiter.tokens('127.0.0.1')).toBe(0);
    },
  );
});

type Options = RateLimitOptions<[Request, Response]>;

describe.each(EXPRESS)('express $version, what a callback gives', ({ express }) => {
  it.each<{ it: string; options: Record<string, unknown>; error: string }>([
    {
      it: 'no key',
      options: { keyGenerator: () => undefined },
      error: 'rateLimit.keyGenerator must give a string, got undefined',
    },
    {
      it: 'no key, with draft-8',
      options: { keyGenerator: () => undefined, standardHeaders: 'draft-8' },
      error: 'rateLimit.keyGenerator must give a string, got undefined',
    },
    {
      it: 'a number for a key, in time',
      options: { keyGenerator: () => Promise.resolve(5) },
      error: 'rateLimit.keyGenerator must give a string, got 5',
    },
    {
      it: 'no cost',
      options: { cost: () => undefined },
      error: 'what rateLimit.cost gives must be a number of at least 0, got undefined',
    },
    {
      it: 'a number for a name',
      options: { identifier: () => 5 },
      error: 'what rateLimit.identifier gives must be a non-empty string, got 5',
    },
    {
      it: 'null for a message',
      options: { limit: 0, message: () => null },
      error: 'rateLimit.message must give text or an object, got null',
    },
    {
      it: 'no JSON, after an async key',
      options: { limit: 0, keyGenerator: () => Promise.resolve('k'), message: { a: 1n } },
      error: 'Do not know how to serialize a BigInt',
    },
  ])('is an error of the request where it is $it', async ({ options, error }) => {
    const told: string[] = [];
    const app = express();
    app.use(rateLimit({ limit: 3, registry: false, ...options } as Options));
    app.use(ok);
    const quietly: ErrorRequestHandler = ({ message }: Error, _req, res, _next) => {
      told.push(message);
      res.status(500).send('failed');
    };
    app.use(quietly);
    const get = await serve(app);
    expect(await get()).toBe(500);
    expect(told).toEqual([error]);
  });
});

describe.each(EXPRESS)('express $version, a router without an app', ({ express }) => {
  it('counts by the socket’s address', async () => {
    const limiter = createRateLimiter({ limit: 1, registry: false });
    const router = express.Router();
    router.use(rateLimit({ limiter }));
    router.get('/', ((_req, res) => void res.end('ok')) as RequestHandler);
    const failed: unknown[] = [];
    const get = await serve((req, res) => {
      router(req as Request, res as Response, (error: unknown) => {
        failed.push(error);
        res.end();
      });
    });
    expect([await get(), await get()]).toEqual([200, 429]);
    expect(failed).toEqual([]);
    expect(limiter.check(1, '127.0.0.1').granted).toBe(false);
  });
});

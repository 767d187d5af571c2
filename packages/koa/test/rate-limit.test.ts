import { createGuard, type ElimitEvent, RejectedError } from '@elimit/core';
import { type SuiteServer, VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Middleware } from 'koa';
import request from 'supertest';
import { limit, rateLimit } from '../src/index.js';
import { KOA, listen } from './harness.js';

const open: SuiteServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

describe.each(KOA)('rateLimit, koa $version', ({ Koa }) => {
  const serve = (...middleware: Middleware[]) => serveWith({}, ...middleware);
  async function serveWith(settings: object, ...middleware: Middleware[]): Promise<string> {
    const app = Object.assign(new Koa(), settings);
    for (const one of middleware) app.use(one);
    const server = await listen(app);
    open.push(server);
    return `http://127.0.0.1:${server.port}`;
  }

  const ok: Middleware = (ctx) => {
    ctx.body = ctx.state.rateLimit as unknown;
  };
  const twoAMinute = () =>
    ({ limit: 2, windowMs: 60_000, clock: new VirtualClock(), registry: false }) as const;

  it('grants its limit, tells how it stands, and refuses the rest with 429', async () => {
    const url = await serve(rateLimit(twoAMinute()), ok);
    const first = await request(url).get('/').expect(200);
    expect(first.body).toMatchObject({ limit: 2, remaining: 1 });
    expect(first.headers.ratelimit).toBe('"2-in-1min";r=1;t=30');
    await request(url).get('/').expect(200);
    const refused = await request(url).get('/').expect(429);
    expect(refused.body).toMatchObject({ code: 'ELIMIT', errno: 2004, reason: 'rate' });
    expect(refused.headers['retry-after']).toBe('30');
  });

  it('counts by what keyGenerator says of the context', async () => {
    const middleware = rateLimit({
      ...twoAMinute(),
      keyGenerator: (ctx) => ctx.get('x-user'),
      skip: (ctx) => ctx.path === '/healthz',
    });
    const url = await serve(middleware, ok);
    const get = (user: string, path = '/') => request(url).get(path).set('x-user', user);
    for (const status of [200, 200, 429]) await get('ann').expect(status);
    await get('bob').expect(200);
    await get('ann', '/healthz').expect(204);
    await middleware.resetKey('ann');
    expect((await get('ann')).status).toBe(200);
  });

  it.each<{ it: string; thrower: Middleware; status: number }>([
    { it: 'ctx.throw(400)', thrower: (ctx) => ctx.throw(400), status: 400 },
    {
      it: 'an error',
      thrower: () => {
        throw new Error('thrown');
      },
      status: 500,
    },
    {
      it: 'a refusal, which has headers of its own',
      thrower: () => {
        throw new RejectedError({
          admitted: false,
          reason: 'concurrency',
          retryAfterMs: 250,
          name: 'inner',
        });
      },
      status: 503,
    },
  ])('keeps its headers on the answer to an error: $it', async ({ thrower, status }) => {
    const url = await serve(rateLimit({ ...twoAMinute(), legacyHeaders: true }), thrower);
    const { headers } = await request(url).get('/').expect(status);
    expect(headers.ratelimit).toBe('"2-in-1min";r=1;t=30');
    expect(headers['ratelimit-policy']).toBe('"2-in-1min";q=2;w=60');
    expect(headers['x-ratelimit-remaining']).toBe('1');
  });

  it("leaves an error's own headers as they are, and frozen errors alone", async () => {
    const thrown: unknown[] = [];
    const cold = Object.freeze(new Error('cold'));
    const url = await serve(
      // Koa itself writes to errors
      async (ctx, next) => {
        await next().catch((error: unknown) => {
          if (ctx.path !== '/frozen') throw error;
          thrown.push(error);
          ctx.status = 500;
        });
      },
      rateLimit(twoAMinute()),
      (ctx) => {
        if (ctx.path === '/frozen') throw cold as Error;
        const headers = { ratelimit: 'mine', etag: 'x' };
        throw Object.assign(new Error('own'), { status: 409, headers });
      },
    );
    const { headers } = await request(url).get('/').expect(409);
    expect([headers.ratelimit, headers.etag]).toEqual(['mine', 'x']);
    await request(url).get('/frozen').expect(500);
    expect(thrown).toEqual([cold]);
  });

  it('leaves the answer to a handler, or words it by a function', async () => {
    const handled = await serve(
      rateLimit({
        ...twoAMinute(),
        handler: async (ctx, _next, refusal) => {
          await Promise.resolve();
          ctx.status = 420;
          ctx.body = `${refusal.retryAfterMs}`;
        },
      }),
      ok,
    );
    const worded = await serve(
      rateLimit({ ...twoAMinute(), message: async (ctx) => Promise.resolve(`no ${ctx.path}`) }),
      ok,
    );
    const failing = await serve(
      rateLimit({ ...twoAMinute(), message: () => Promise.reject(new Error('no words')) }),
      ok,
    );
    for (let i = 0; i < 2; i++) {
      for (const url of [handled, worded, failing]) await request(url).get('/').expect(200);
    }
    await request(handled).get('/').expect(420, '30000');
    expect((await request(worded).get('/x').expect(429)).body).toMatchObject({ message: 'no /x' });
    await request(failing).get('/').expect(500);
  });

  it.each([
    {
      it: 'believes everybody',
      settings: { proxy: true },
      warning:
        'WARN_TRUST_PROXY: rate limit rate: app.proxy is true and app.maxIpsCount is not set, so a client chooses the address it is counted by: set app.maxIpsCount to the number of your proxies',
    },
    {
      it: 'believes nobody, behind a proxy',
      settings: {},
      warning:
        'WARN_FORWARDED_IGNORED: rate limit rate: requests carry X-Forwarded-For or Forwarded, and app.proxy is off: behind a proxy all clients share its address',
    },
    { it: 'knows its proxies', settings: { proxy: true, maxIpsCount: 1 }, warning: undefined },
  ])('warns by the names of Koa’s settings where it $it', async ({ settings, warning }) => {
    const told: string[] = [];
    const onEvent = (event: ElimitEvent) => {
      if (event.type === 'warning') told.push(`${event.code}: ${event.message}`);
    };
    const url = await serveWith(settings, rateLimit({ ...twoAMinute(), onEvent }), ok);
    for (let i = 0; i < 2; i++) {
      await request(url).get('/').set('x-forwarded-for', '1.2.3.4').expect(200);
    }
    expect(told).toEqual(warning === undefined ? [] : [warning]);
  });

  it.each<{ options: unknown; error: string }>([
    { options: undefined, error: 'rateLimit must be an object, got undefined' },
    { options: null, error: 'rateLimit must be an object, got null' },
    { options: { limiter: null }, error: 'rateLimit.limiter must be an object, got null' },
    { options: { limit: 1, handler: 5 }, error: 'rateLimit.handler must be a function, got 5' },
  ])('refuses at construction: $error', ({ options, error }) => {
    expect(() => rateLimit(options as { limit: number })).toThrow(error);
  });

  it('is ignored by the limit in front of it', async () => {
    const guard = createGuard({ limit: 5, registry: false });
    const url = await serve(limit(guard), rateLimit(twoAMinute()), ok);
    for (const status of [200, 200, 429]) await request(url).get('/').expect(status);
    expect(guard.snapshot().outcomes).toMatchObject({ success: 2, ignored: 1 });
  });
});

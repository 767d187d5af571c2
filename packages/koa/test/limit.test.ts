import { Readable } from 'node:stream';
import { createGuard, createGuards, createRegistry, type GuardSnapshot } from '@elimit/core';
import { eventually, RawClient, type SuiteServer } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Router } from '@koa/router';
import type { Middleware } from 'koa';
import request from 'supertest';
import { limit, timeLeftOf } from '../src/index.js';
import { KOA, listen, routesOf } from './harness.js';

const open: SuiteServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

describe.each(KOA)('limit, koa $version', ({ Koa }) => {
  async function serve(...middleware: Middleware[]): Promise<string> {
    const app = new Koa();
    for (const one of middleware) app.use(one);
    const server = await listen(app);
    open.push(server);
    return `http://127.0.0.1:${server.port}`;
  }

  const newGuard = () => createGuard({ limit: 2, registry: false });
  const ok: Middleware = (ctx) => {
    ctx.body = 'ok';
  };

  it('sends Retry-After for what a guard in a handler refuses, if nobody else answers', async () => {
    const guard = createGuard({ limit: 1, registry: false });
    guard.tryAcquire();
    const answer = await request(await serve(() => guard.execute(() => {}))).get('/');
    expect(answer.status).toBe(503);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });

  it('tells a handler how much of its caller’s time is left', async () => {
    const url = await serve((ctx) => {
      ctx.body = `${timeLeftOf(ctx)}`;
    });
    const left = await request(url).get('/').set('x-request-timeout-ms', '30000');
    expect(Number(left.text)).toBeGreaterThan(0);
    expect(Number(left.text)).toBeLessThanOrEqual(30_000);
    expect((await request(url).get('/')).text).toBe('undefined');
  });

  describe('names of createGuards', () => {
    type Mount = (guarded: Middleware) => Middleware[];
    const items = (guarded: Middleware, prefix?: string): Router => {
      const router = new Router(prefix === undefined ? {} : { prefix });
      return router.get('/items/:id', guarded, ok);
    };

    it.each<{ it: string; mount: Mount; paths: string[]; names: string[] }>([
      {
        it: 'a route',
        mount: (guarded) => [routesOf(items(guarded))],
        paths: ['/items/1', '/items/2'],
        names: ['GET /items/:id'],
      },
      {
        it: 'a prefix',
        mount: (guarded) => [routesOf(items(guarded, '/api'))],
        paths: ['/api/items/1'],
        names: ['GET /api/items/:id'],
      },
      {
        it: 'a router in a router, below a parameter: its template, not what stands in the URL',
        mount: (guarded) => [routesOf(new Router().use('/users/:user', items(guarded).routes()))],
        paths: ['/users/ann/items/1', '/users/bob/items/2'],
        names: ['GET /users/:user/items/:id'],
      },
      {
        it: 'a whole router: the route that it leads to',
        mount: (guarded) => {
          const router = new Router();
          router.use(guarded);
          router.get('/items/:id', ok).post('/items/:id', ok).get('/items', ok);
          return [routesOf(router)];
        },
        paths: ['/items/1', '/items'],
        names: ['GET /items/:id', 'GET /items'],
      },
      {
        it: 'two routers, one after the other',
        mount: (guarded) => [
          routesOf(new Router().post('/items/:id', guarded, ok)),
          routesOf(items(guarded)),
        ],
        paths: ['/items/1'],
        names: ['GET /items/:id'],
      },
    ])('are taken from templates: $it', async ({ mount, paths, names }) => {
      const guards = createGuards({ registry: createRegistry() });
      const url = await serve(...mount(limit(guards)));
      for (const path of paths) await request(url).get(path).expect(200, 'ok');
      expect(guards.names()).toEqual(names);
    });

    it('count HEAD with the GET route that answers it', async () => {
      const guards = createGuards({ registry: createRegistry() });
      const url = await serve(routesOf(new Router().get('/', limit(guards), ok)));
      await request(url).head('/').expect(200);
      expect(guards.names()).toEqual(['GET /']);
    });

    it('need to be given outside of a router', async () => {
      const errors: unknown[] = [];
      const url = await serve(
        async (_ctx, next) => {
          await next().catch((error: unknown) => errors.push(error));
        },
        limit(createGuards({ registry: createRegistry() })),
        ok,
      );
      await request(url).get('/').expect(404);
      expect(String(errors[0])).toMatch(/^TypeError: limit\(guards\) .* it needs \{ name \}$/);
    });
  });

  it('is called app unless it is named', () => {
    const registry = createRegistry();
    limit(7, { registry });
    limit('auto', { registry, name: 'named' });
    expect(registry.sources().map((source) => (source.snapshot() as GuardSnapshot).name)).toEqual([
      'app',
      'named',
    ]);
  });

  it.each<{ it: string; thrower: Middleware; status: number; failure: number }>([
    {
      it: 'an error',
      thrower: () => {
        throw new Error('thrown');
      },
      status: 500,
      failure: 1,
    },
    { it: 'ctx.throw(429)', thrower: (ctx) => ctx.throw(429), status: 429, failure: 0 },
    {
      it: 'something that is no error',
      thrower: () => {
        // oxlint-disable-next-line typescript/only-throw-error -- it happens
        throw 'text';
      },
      status: 500,
      failure: 1,
    },
  ])(
    'gives the slot back when it is thrown downstream: $it',
    async ({ thrower, status, failure }) => {
      const guard = newGuard();
      const url = await serve(limit(guard), thrower);
      await request(url).get('/').expect(status);
      expect(guard.inflight).toBe(0);
      expect(guard.snapshot().outcomes).toMatchObject({ failure, success: 1 - failure });
    },
  );

  it('counts as what is answered, if somebody in front swallows the error', async () => {
    const guard = newGuard();
    const url = await serve(
      async (ctx, next) => {
        await next().catch(() => {
          ctx.status = 200;
          ctx.body = 'never mind';
        });
      },
      limit(guard),
      () => {
        throw new Error('thrown');
      },
    );
    await request(url).get('/').expect(200, 'never mind');
    expect(guard.snapshot()).toMatchObject({ inflight: 0, outcomes: { success: 1, failure: 0 } });
  });

  it('holds the slot of a streamed body until it has been written, not until next() returns', async () => {
    const guard = newGuard();
    let returned = false;
    const source = new Readable({ read() {} });
    const url = await serve(
      async (_ctx, next) => {
        await next();
        returned = true;
      },
      limit(guard),
      (ctx) => {
        ctx.body = source;
      },
    );
    const client = await RawClient.open(Number(new URL(url).port));
    client.request('GET /');
    source.push('begin');
    await client.until(/begin/);
    expect(returned).toBe(true);
    expect(guard.inflight).toBe(1);
    source.push('end');
    source.push(null);
    await client.until(/end/);
    await eventually(
      () => guard.snapshot().outcomes.success === 1,
      () => 'the stream to end',
    );
    client.destroy();
  });

  it('holds the slot of ctx.respond = false until its handler ends the answer', async () => {
    const guard = newGuard();
    let answer = (): void => {};
    const url = await serve(limit(guard), (ctx) => {
      ctx.respond = false;
      answer = () => void ctx.res.writeHead(200).end('by hand');
    });
    const answered = request(url).get('/').expect(200, 'by hand');
    const waiting = answered.then(() => undefined);
    await eventually(
      () => guard.inflight === 1,
      () => 'the request',
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(guard.inflight).toBe(1);
    answer();
    await waiting;
    expect(guard.inflight).toBe(0);
  });

  it('shows a refusal to what stands in front, which cannot change it', async () => {
    const guard = createGuard({ limit: 1, registry: false });
    const seen: unknown[] = [];
    const url = await serve(
      async (ctx, next) => {
        await next();
        seen.push(ctx.status);
        ctx.set('X-Later', 'too late');
        ctx.body = 'too late';
      },
      limit(guard),
      ok,
    );
    const entry = guard.tryAcquire();
    const answer = await request(url).get('/').expect(503);
    expect(answer.body).toMatchObject({ code: 'ELIMIT', reason: 'concurrency' });
    expect(answer.headers).not.toHaveProperty('x-later');
    expect(seen).toEqual([503]);
    if (entry.admitted) entry.release('success');
  });

  it('lets a handler of refusals take its time, or go on after all', async () => {
    const guard = createGuard({ limit: 1, registry: false });
    const url = await serve(
      limit(guard, {
        handler: async (ctx, { reason }, next) => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          if (ctx.path === '/vip') await next();
          else ctx.throw(418, reason, { expose: true });
        },
      }),
      ok,
    );
    const entry = guard.tryAcquire();
    expect((await request(url).get('/vip')).text).toBe('ok');
    await request(url).get('/').expect(418, 'concurrency');
    if (entry.admitted) entry.release('success');
  });

  it('ends what stands in front of it, if the client leaves while its request waits', async () => {
    const guard = createGuard({ limit: 20, registry: false });
    let began = 0;
    let ended = 0;
    let started = 0;
    const url = await serve(
      async (_ctx, next) => {
        began++;
        try {
          await next();
        } finally {
          ended++;
        }
      },
      limit(guard),
      (ctx) => {
        started++;
        for (const until = performance.now() + 20; performance.now() < until; );
        for (const client of clients.slice(1)) client.destroy();
        ctx.body = 'ok';
      },
    );
    const port = Number(new URL(url).port);
    const clients = await Promise.all(Array.from({ length: 8 }, () => RawClient.open(port)));
    for (const client of clients) client.request('GET /');
    await clients[0]?.until(/ok/);
    await eventually(
      () => guard.inflight === 0 && ended === began,
      () => `${began} to end, ${ended} have`,
    );
    // the process hears of hang-ups when the loop next looks at its sockets: one or two may start before
    expect(started).toBeLessThan(5);
    expect(guard.snapshot().outcomes.abandoned).toBe(began - started);
    clients[0]?.destroy();
  });

  it.each<{ it: string; options: object; message: RegExp }>([
    { it: 'an unknown option', options: { skp: true }, message: /^TypeError: limit\.skp/ },
    { it: 'a handler', options: { handler: 1 }, message: /^TypeError: limit\.handler/ },
    { it: 'skip', options: { skip: true }, message: /^TypeError: limit\.skip/ },
    { it: 'a status', options: { statusCode: 200 }, message: /^RangeError: limit\.statusCode/ },
  ])('is refused when it is made: $it', ({ options, message }) => {
    let thrown: unknown;
    try {
      limit(1, { registry: false, ...options });
    } catch (error) {
      thrown = error;
    }
    expect(String(thrown)).toMatch(message);
  });
});

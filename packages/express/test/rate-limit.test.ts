import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { createRateLimiter, type ElimitEvent } from '@elimit/core';
import { TestRateStore, VirtualClock } from '@elimit/testkit';
import { afterEach, describe, expect, it } from '@jest/globals';
import type { Express } from 'express';
import { limit, type RateLimitOptions, rateLimit } from '../src/index.js';
import { EXPRESS } from './harness.js';

let servers: Server[] = [];
afterEach(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
  servers = [];
});

async function serve(app: Express): Promise<string> {
  const server = app.listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

type Options = RateLimitOptions<[import('express').Request, import('express').Response]>;

describe.each(EXPRESS)('rateLimit on Express $version', ({ express }) => {
  /** An app that answers every request, behind one limit with a clock of its own. */
  async function make(options: Options, change: (app: Express) => void = () => undefined) {
    const clock = new VirtualClock();
    const events: ElimitEvent[] = [];
    const app = express();
    change(app);
    const middleware = rateLimit({
      clock,
      timers: clock,
      registry: false,
      onEvent: (event) => events.push(event),
      ...options,
    });
    app.use(middleware);
    app.get('/status/:code', (req, res) => {
      res.status(Number(req.params.code)).send('answer');
    });
    app.use((req, res) => {
      res.json({ rateLimit: (req as unknown as { rateLimit?: unknown }).rateLimit ?? null });
    });
    const url = await serve(app);
    const get = (path = '/', headers: Record<string, string> = {}) =>
      fetch(url + path, { headers });
    const statuses = async (count: number, path = '/', headers?: Record<string, string>) => {
      const all: number[] = [];
      for (let i = 0; i < count; i++) all.push((await get(path, headers)).status);
      return all;
    };
    return { clock, events, get, statuses, middleware, url };
  }
  const warnings = (events: ElimitEvent[]) =>
    events.flatMap((event) => (event.type === 'warning' ? [event.code] : []));

  it('answers 429 with the ELIMIT body once the burst is used, and lets through again in time', async () => {
    const { clock, get, statuses } = await make({ rate: 0.5, burst: 2 });
    expect(await statuses(2)).toEqual([200, 200]);
    const refused = await get();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('2');
    expect(refused.headers.get('x-bd-error-code')).toBe('2004');
    expect(await refused.json()).toEqual({
      code: 'ELIMIT',
      errno: 2004,
      reason: 'rate',
      message: 'Too many requests; try again later.',
      retryAfterMs: 2000,
    });
    clock.advanceMs(2000);
    expect(await statuses(2)).toEqual([200, 429]);
  });

  it.each<{ it: string; options: Options; headers: Record<string, string | null> }>([
    {
      it: 'the current draft by default',
      options: {},
      headers: {
        ratelimit: '"3-in-1min";r=2;t=20',
        'ratelimit-policy': '"3-in-1min";q=3;w=60',
        'x-ratelimit-limit': null,
      },
    },
    {
      it: 'draft-8, with a partition key that does not give the key away',
      options: { standardHeaders: 'draft-8', identifier: 'per "user"\u00e9' },
      headers: {
        ratelimit: '"per \\"user\\"?"; r=2; t=20',
        'ratelimit-policy': '"per \\"user\\"?"; q=3; w=60; pk=:EsoXtJryKJQ2:',
      },
    },
    {
      it: 'draft-7',
      options: { standardHeaders: 'draft-7' },
      headers: { ratelimit: 'limit=3, remaining=2, reset=20', 'ratelimit-policy': '3;w=60' },
    },
    {
      it: 'draft-6',
      options: { standardHeaders: 'draft-6' },
      headers: {
        'ratelimit-limit': '3',
        'ratelimit-remaining': '2',
        'ratelimit-reset': '20',
        'ratelimit-policy': '3;w=60',
      },
    },
    {
      it: 'the old X- headers, and nothing else',
      options: { standardHeaders: false, legacyHeaders: true },
      headers: { 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '2', ratelimit: null },
    },
    {
      it: 'none',
      options: { standardHeaders: false },
      headers: { ratelimit: null, 'ratelimit-policy': null, 'x-ratelimit-limit': null },
    },
  ])('sets $it', async ({ options, headers }) => {
    const { get } = await make({ limit: 3, windowMs: 60_000, ...options });
    const answer = await get();
    const got = Object.fromEntries(
      Object.keys(headers).map((name) => [name, answer.headers.get(name)]),
    );
    expect(got).toEqual(headers);
    expect(answer.headers.get('retry-after')).toBeNull();
  });

  it('says when an old client may come back, as seconds since 1970', async () => {
    const { get } = await make({ limit: 3, legacyHeaders: true });
    const reset = Number((await get()).headers.get('x-ratelimit-reset'));
    const inSeconds = reset - Date.now() / 1000;
    expect(Math.round(inSeconds / 20)).toBe(1); // a third of a minute, give or take this machine
  });

  it('adds the headers of several limits up, and keeps Retry-After whole', async () => {
    const clock = new VirtualClock();
    const app = express();
    const common = { clock, timers: clock, registry: false } as const;
    app.use(
      rateLimit({ ...common, rate: 100, burst: 100, name: 'global', keyGenerator: () => 'all' }),
    );
    app.get('/', rateLimit({ ...common, rate: 5, burst: 1, name: 'short' }), (_req, res) => {
      res.end();
    });
    const url = await serve(app);
    const first = await fetch(url);
    expect(first.headers.get('ratelimit-policy')).toBe('"global";q=100;w=1, "short";q=1;w=1');
    expect(first.headers.get('ratelimit')).toBe('"global";r=99;t=1, "short";r=0;t=1');
    const second = await fetch(url);
    expect(second.status).toBe(429);
    expect(second.headers.get('retry-after')).toBe('1'); // 0.2 s remain
    expect(second.headers.get('retry-after-short')).toBeNull();
  });

  it('tells the request how it stands', async () => {
    const { get } = await make({ limit: 3, requestPropertyName: 'rateLimit' });
    const { rateLimit: info } = (await (await get()).json()) as {
      rateLimit: Record<string, unknown>;
    };
    expect(info).toMatchObject({ limit: 3, used: 1, remaining: 2, key: '127.0.0.1' });
    expect(Date.parse(info.resetTime as string)).toBeGreaterThan(0);
    const none = await make({ limit: 3, requestPropertyName: false });
    expect(await (await none.get()).json()).toEqual({ rateLimit: null });
  });

  it('counts by a key of the user’s, at a cost of the user’s, and skips what it is told to', async () => {
    const { statuses } = await make({
      limit: 4,
      keyGenerator: (req) => Promise.resolve(String(req.headers['x-user'])),
      cost: (req) => (req.path === '/dear' ? 4 : 1),
      skip: (req) => req.path === '/health',
    });
    expect(await statuses(2, '/dear', { 'x-user': 'a' })).toEqual([200, 429]);
    expect(await statuses(1, '/', { 'x-user': 'b' })).toEqual([200]);
    expect(await statuses(3, '/health', { 'x-user': 'a' })).toEqual([200, 200, 200]);
  });

  it('gives what a callback throws to the framework', async () => {
    const { get } = await make({
      limit: 4,
      keyGenerator: () => Promise.reject(new Error('no key')),
    });
    expect((await get()).status).toBe(500);
  });

  it.each<{ it: string; options: Options; status: number; body: unknown }>([
    {
      it: 'text',
      options: { message: 'slower, please' },
      status: 429,
      body: { code: 'ELIMIT', message: 'slower, please' },
    },
    {
      it: 'an object',
      options: { message: { error: 'slow' }, statusCode: 420 },
      status: 420,
      body: { error: 'slow' },
    },
    {
      it: 'a function',
      options: { message: (req) => Promise.resolve({ path: req.path }) },
      status: 429,
      body: { path: '/' },
    },
    {
      it: 'a handler’s',
      options: {
        handler: (_req, res, _next, { retryAfterMs, statusCode, info }) => {
          res.status(statusCode).json({ retryAfterMs, used: info.used });
        },
      },
      status: 429,
      body: { retryAfterMs: 60_000, used: 1 },
    },
  ])('answers with $it', async ({ options, status, body }) => {
    const { get, statuses } = await make({ limit: 1, ...options });
    await statuses(1);
    const refused = await get();
    expect(refused.status).toBe(status);
    expect(await refused.json()).toMatchObject(body as object);
  });

  it('may let a refused request through after all', async () => {
    const { statuses } = await make({ limit: 1, handler: (_req, _res, next) => next() });
    expect(await statuses(3)).toEqual([200, 200, 200]);
  });

  it('blocks all with a limit of 0, and tells clients a day', async () => {
    const { get } = await make({ limit: 0 });
    const refused = await get();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('86400');
  });

  it.each([
    {
      it: 'successes back',
      options: { skipSuccessfulRequests: true },
      ok: [200, 200, 200],
      bad: [500, 429],
    },
    {
      it: 'failures back',
      options: { skipFailedRequests: true },
      ok: [200, 429],
      bad: [500, 500, 500],
    },
  ])('gives $it', async ({ options, ok, bad }) => {
    const one = await make({ limit: 1, ...options });
    expect(await one.statuses(ok.length, '/status/200')).toEqual(ok);
    const other = await make({ limit: 1, ...options });
    expect(await other.statuses(bad.length, '/status/500')).toEqual(bad);
  });

  it('takes a client that left for neither, and never gives back more than the burst', async () => {
    const clock = new VirtualClock();
    const limiter = createRateLimiter({ limit: 3, clock, timers: clock, registry: false });
    const app = express();
    app.use(rateLimit({ limiter, skipFailedRequests: true, skipSuccessfulRequests: true }));
    let arrived: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => (arrived = resolve));
    app.get('/slow', (req, res) => {
      req.socket.once('close', () => res.end()); // it answers when nobody is there any more
      arrived();
    });
    app.use((_req, res) => {
      res.end();
    });
    const url = await serve(app);
    await fetch(url);
    await new Promise((resolve) => setImmediate(resolve));
    expect(limiter.tokens('127.0.0.1')).toBe(3);
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.write('GET /slow HTTP/1.1\r\nhost: a\r\n\r\n');
    await waiting;
    socket.destroy();
    await fetch(url); // by now the server has seen the client go
    expect(limiter.tokens('127.0.0.1')).toBe(2);
  });

  it('counts a request once, however often the limit is in its way, and says so', async () => {
    const events: ElimitEvent[] = [];
    const one = rateLimit({ limit: 2, registry: false, onEvent: (event) => events.push(event) });
    const app = express();
    app.use(one);
    app.use(one);
    app.get('/', one, (_req, res) => {
      res.end();
    });
    const url = await serve(app);
    const statuses = [];
    for (let i = 0; i < 3; i++) statuses.push((await fetch(url)).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(warnings(events)).toEqual(['WARN_RATE_TWICE']);
  });

  it('warns of one that is made for each request', async () => {
    const events: ElimitEvent[] = [];
    const app = express();
    app.get('/', (req, res, next) => {
      rateLimit({
        limit: 1,
        name: `per request ${express === EXPRESS[0]?.express}`,
        registry: false,
        onEvent: (e) => events.push(e),
      })(req, res, next);
    });
    app.use((_req, res) => {
      res.end();
    });
    const url = await serve(app);
    for (let i = 0; i < 5; i++) await fetch(url);
    expect(warnings(events)).toEqual(['WARN_RATE_PER_REQUEST']);
  });

  describe('behind proxies', () => {
    const forwarded = { 'x-forwarded-for': '1.2.3.4' };

    it('warns once when everybody is believed, and limits by what they say', async () => {
      const { events, statuses } = await make({ limit: 1 }, (app) => app.set('trust proxy', true));
      expect(await statuses(2, '/', forwarded)).toEqual([200, 429]);
      expect(await statuses(1, '/', { 'x-forwarded-for': '5.6.7.8' })).toEqual([200]);
      expect(warnings(events)).toEqual(['WARN_TRUST_PROXY']);
    });

    it('warns once when nobody is believed though somebody forwards', async () => {
      const { events, statuses } = await make({ limit: 2 });
      expect(await statuses(1, '/', { forwarded: 'for=1.2.3.4' })).toEqual([200]);
      expect(await statuses(2, '/', { 'x-forwarded-for': '5.6.7.8' })).toEqual([200, 429]);
      expect(warnings(events)).toEqual(['WARN_FORWARDED_IGNORED']);
    });

    it.each([
      { it: 'told of its proxies', setting: 1, options: {} },
      { it: 'told not to look', setting: true, options: { validate: false } },
      { it: 'with a key of its own', setting: true, options: { keyGenerator: () => 'k' } },
    ])('has nothing to say $it', async ({ setting, options }) => {
      const { events, statuses } = await make({ limit: 5, ...options }, (app) =>
        app.set('trust proxy', setting),
      );
      await statuses(2, '/', forwarded);
      expect(warnings(events)).toEqual([]);
    });

    it('is not impressed by a header of many hops', async () => {
      const { statuses } = await make({ limit: 1 }, (app) => app.set('trust proxy', 1));
      const hops = Array.from({ length: 500 }, (_, i) => `10.0.${i % 250}.1`).join(', ');
      expect(await statuses(1, '/', { 'x-forwarded-for': `${hops}, 9.9.9.9` })).toEqual([200]);
      expect(await statuses(1, '/', { 'x-forwarded-for': '9.9.9.9' })).toEqual([429]);
    });
  });

  it('works on a shared store, and goes on without it', async () => {
    const store = new TestRateStore();
    const one = await make({ limit: 2, store, name: 'shared' });
    const two = await make({ limit: 2, store, name: 'shared' });
    expect(await one.statuses(1)).toEqual([200]);
    expect(await two.statuses(2)).toEqual([200, 429]);
    store.health = 'refuse';
    expect(await one.statuses(3)).toEqual([200, 200, 429]); // now by itself
  });

  it('makes a key new by hand', async () => {
    const { middleware, statuses } = await make({ limit: 1 });
    expect(await statuses(2)).toEqual([200, 429]);
    await middleware.resetKey(middleware.keyOf('127.0.0.1'));
    expect(await statuses(2)).toEqual([200, 429]);
    await middleware.close();
  });

  it('says nothing about load to a guard further out', async () => {
    const app = express();
    app.use(limit(5));
    app.use(rateLimit({ limit: 0, registry: false }));
    const url = await serve(app);
    expect((await fetch(url)).status).toBe(429);
  });

  it.each<{ it: string; options: unknown; error: string }>([
    { it: 'no limit at all', options: {}, error: 'rateLimit.rate is missing: give rate' },
    {
      it: 'an unknown option',
      options: { limit: 1, limits: 2 },
      error: 'rateLimit.limits is not an option',
    },
    { it: 'the old name', options: { max: 1 }, error: 'rateLimit.max is not an option: say limit' },
    {
      it: 'a status that is none',
      options: { limit: 1, statusCode: 200 },
      error: 'rateLimit.statusCode must be a whole number from 400 to 599',
    },
    {
      it: 'a draft that is none',
      options: { limit: 1, standardHeaders: 'draft-5' },
      error: 'must be one of draft-6',
    },
    {
      it: 'a subnet of 8 bits',
      options: { limit: 1, ipv6Subnet: 8 },
      error: 'rateLimit.ipv6Subnet',
    },
    {
      it: 'a limiter and a limit',
      options: { limiter: createRateLimiter({ limit: 1, registry: false }), limit: 1 },
      error: 'belongs to the limiter',
    },
    { it: 'nothing', options: undefined, error: 'rateLimit must be an object' },
    { it: 'null', options: null, error: 'rateLimit must be an object, got null' },
    {
      it: 'a rate and a limit, by the names they were given',
      options: { rate: 1, limit: 1 },
      error: 'rateLimit.limit and rateLimit.rate exclude each other',
    },
    {
      it: 'null for a limiter',
      options: { limiter: null },
      error: 'rateLimit.limiter must be an object, got null',
    },
    {
      it: 'half a limiter',
      options: { limiter: { check: () => undefined } },
      error: 'rateLimit.limiter.refund must be a function, got undefined',
    },
    ...[5, null, true, [1]].map((message) => ({
      it: `a message of ${JSON.stringify(message)}`,
      options: { limit: 1, message },
      error: 'rateLimit.message must be text, an object or a function, got ',
    })),
  ])('refuses $it at construction', ({ options, error }) => {
    expect(() => rateLimit(options as Options)).toThrow(error);
  });
});

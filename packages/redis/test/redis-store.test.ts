import { readFileSync } from 'node:fs';
import {
  createRateLimiter,
  type ElimitEvent,
  type RateStoreSession,
  systemClock,
  systemTimers,
} from '@elimit/core';
import { type RedisClient, redisStore } from '@elimit/redis';
import { rateStoreSuite, VirtualClock } from '@elimit/testkit';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { createClient } from 'redis';
import { redisKey } from '../src/key.js';
import { describeRedis } from './support/describe-redis.js';
import { ownRedis } from './support/own-redis.js';

let io: Redis;
let node: ReturnType<typeof createClient>;
afterAll(() => node.destroy()); // goes first, while there is a server
const own = ownRedis();
beforeAll(async () => {
  io = own.io;
  node = createClient({ url: own.server.url });
  await node.connect();
});

/** A client that counts what it is asked. */
function counting(client: Redis): { client: RedisClient; calls: () => number } {
  let calls = 0;
  return {
    client: {
      get status() {
        return client.status;
      },
      evalsha: (sha: string, keys: number, ...args: string[]) => {
        calls++;
        return client.evalsha(sha, keys, ...args);
      },
      eval: (script: string, keys: number, ...args: string[]) => {
        calls++;
        return client.eval(script, keys, ...args);
      },
      del: (key) => client.del(key),
    },
    calls: () => calls,
  };
}

function open(
  client: RedisClient,
  name: string,
  options = {},
  clock = systemClock,
): RateStoreSession {
  const timers = clock instanceof VirtualClock ? clock : systemTimers;
  return redisStore(client, options).open({ name, clock, timers, random: () => 0.5 });
}

describeRedis('the Redis store', () => {
  describe('with ioredis', () => {
    rateStoreSuite(it, { open: (name) => open(io, name) });
  });
  describe('with node-redis', () => {
    rateStoreSuite(it, { open: (name) => open(node, name) });
  });
  describe('without leases', () => {
    rateStoreSuite(it, { open: (name) => open(io, name, { lease: false }) });
  });

  const file = new URL('../../core/test/vectors/token-bucket/distributed.json', import.meta.url);
  const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: DistributedCase[] };
  it.each(cases)('counts as recorded: $name', async ({ name, config, steps }) => {
    let nowUs = 0;
    const session = open(io, name, { lease: false, nowUs: () => nowUs });
    const quota = { rate: config.tokensPerSecond, burst: config.capacity };
    await session.take('k', config.capacity - config.initialTokens, quota);
    for (const step of steps) {
      nowUs = step.timestampMicros;
      // each client is another process: nothing of one's knowledge may help another
      const answer = await open(io, name, { lease: false, nowUs: () => nowUs }).take(
        'k',
        step.tokens,
        quota,
      );
      expect(answer.granted).toBe(step.granted);
      expect(answer.remaining).toBeCloseTo(step.tokensAfter, 6);
      expect(answer.waitUs).toBe(
        step.granted ? 0 : (step.retryAfterMicros ?? Number.POSITIVE_INFINITY),
      );
    }
  });

  it('loads its script again when the server has forgotten it', async () => {
    const session = open(io, 'noscript', { lease: false });
    await session.take('k', 1, { rate: 1, burst: 5 });
    await io.script('FLUSH');
    const answer = await session.take('k', 1, { rate: 1, burst: 5 });
    expect(answer.remaining).toBeCloseTo(3, 0);
  });

  it('calls another application’s value that key’s trouble, and leaves it', async () => {
    await io.set('elimit:odd:theirs', 'text');
    const events: ElimitEvent[] = [];
    const limiter = createRateLimiter({
      rate: 1,
      burst: 2,
      name: 'odd',
      registry: false,
      store: redisStore(io),
      storeTimeoutMs: 5000, // however slow the machine is
      onEvent: (event) => events.push(event),
    });
    expect(await limiter.tryTake(2, 'theirs')).toBe(true); // counted here
    expect(await limiter.tryTake(1, 'theirs')).toBe(false);
    expect(await limiter.tryTake(1, 'ours')).toBe(true);
    expect(limiter.snapshot().mode).toBe('store');
    expect(events.filter(({ type }) => type !== 'reject')).toMatchObject([
      { code: 'WARN_RATE_STORE_KEY' },
    ]);
    expect(await io.get('elimit:odd:theirs')).toBe('text');
    await limiter.close();
  });

  it('has every key end by itself after any sequence of calls', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            op: fc.constantFrom('take', 'refund', 'reset', 'probe', 'close', 'stopped'),
            n: fc.integer({ min: 0, max: 12 }),
          }),
          { minLength: 1, maxLength: 12 },
        ),
        async (ops) => {
          await io.flushall();
          const session = open(io, 'ttl');
          const quota = { rate: 100, burst: 10 };
          for (const { op, n } of ops) {
            if (op === 'take') await session.take('k', n, quota);
            if (op === 'stopped') await session.take('k', n, { rate: 0, burst: 10 });
            if (op === 'refund') session.refund('k', n, quota);
            if (op === 'reset') await session.reset('k');
            if (op === 'probe') await session.probe();
            if (op === 'close') await session.close();
          }
          await io.ping(); // refunds have gone out before it
          for (const key of await io.keys('*')) {
            const [tokens, ttlMs] = [Number(await io.hget(key, 't')), await io.pttl(key)];
            expect(ttlMs).toBeGreaterThan(0);
            expect(tokens).toBeGreaterThanOrEqual(-1e-6);
            expect(tokens).toBeLessThanOrEqual(10);
          }
          await session.close();
        },
      ),
      { numRuns: 300 },
    );
  });

  it('forgets a refund that comes after its key has gone', async () => {
    const session = open(io, 'late refund', { lease: false });
    await session.take('k', 3, { rate: 1, burst: 5 });
    await io.del('elimit:late refund:k');
    session.refund('k', 3, { rate: 1, burst: 5 });
    await io.ping();
    expect(Number(await io.hget('elimit:late refund:k', 't'))).toBe(5);
  });

  it('goes on when the server’s clock was set back, without minting', async () => {
    const session = open(io, 'back', { lease: false });
    await session.take('k', 5, { rate: 0.001, burst: 5 });
    // as if an hour ago the server had been an hour ahead
    await io.hincrby('elimit:back:k', 's', 3_600_000_000);
    expect((await session.take('k', 1, { rate: 1000, burst: 5 })).granted).toBe(false);
    const other = open(io, 'back', { lease: false }); // one that remembers no refusal
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await other.take('k', 1, { rate: 1000, burst: 5 })).granted).toBe(true);
  });

  it.each<[limiter: string, key: string, expected: string | RegExp]>([
    ['api', 'user 7', 'elimit:api:user 7'],
    ['api', '2001:db8::/56', 'elimit:api:2001:db8::/56'],
    ['api', '{a}', /^elimit:#[\w-]{43}$/],
    ['api', 'a\0b', /^elimit:#[\w-]{43}$/],
    ['api', 'x'.repeat(1_000_000), /^elimit:#[\w-]{43}$/],
    ['a:b', 'c', /^elimit:#[\w-]{43}$/],
  ])('keeps a key of limiter %s apart and readable where it can be', (limiter, key, expected) => {
    expect(redisKey('elimit', limiter, key)).toMatch(expected);
  });

  it('keeps two limiters apart whose names and keys read alike together', () => {
    expect(redisKey('p', 'a:b', 'c')).not.toBe(redisKey('p', 'a', 'b:c'));
    expect(redisKey('p', 'a:b', '{}')).not.toBe(redisKey('p', 'a', 'b:{}'));
  });

  it.each<{ it: string; build: () => unknown; error: string }>([
    {
      it: 'no client',
      build: () => redisStore(undefined as never),
      error: 'client must be an object',
    },
    {
      it: 'something else',
      build: () => redisStore({} as never),
      error: 'an ioredis or a node-redis client',
    },
    {
      it: 'braces',
      build: () => redisStore(io, { prefix: '{app}' }),
      error: 'must hold no braces',
    },
    {
      it: 'an unknown option',
      build: () => redisStore(io, { leases: true } as never),
      error: 'redisStore.leases is not an option',
    },
    {
      it: 'a lease of a moment',
      build: () => redisStore(io, { leaseMs: 1 }),
      error: 'from 100 to 60000',
    },
    {
      it: 'a time that is no function',
      build: () => redisStore(io, { nowUs: 5 as never }),
      error: 'redisStore.nowUs must be a function, got 5',
    },
  ])('refuses $it', ({ build, error }) => {
    expect(build).toThrow(error);
  });
});

describeRedis('leases', () => {
  const quota = { rate: 1000, burst: 1000 };

  it('spends a tenth of the quota without asking', async () => {
    const { client, calls } = counting(io);
    const session = open(client, 'tenth');
    for (let i = 0; i < 101; i++) expect((await session.take('k', 1, quota)).granted).toBe(true);
    expect(calls()).toBeLessThanOrEqual(2); // the first may need the script's text too
    expect(Number(await io.hget('elimit:tenth:k', 't'))).toBeCloseTo(899, -1);
    await session.take('k', 1, quota);
    expect(calls()).toBeLessThanOrEqual(3);
    await session.close();
  });

  it('shares the tenth among those who are there, and never has more than that out', async () => {
    const sessions = Array.from({ length: 5 }, () => open(io, 'five'));
    for (const session of sessions) await session.take('k', 1, { rate: 0.001, burst: 1000 });
    expect(sessions.at(-1)?.holders).toBe(5);
    const still = { rate: 1000, burst: 1000 };
    const many = Array.from({ length: 8 }, () => open(io, 'eight'));
    for (const session of many) await session.take('k', 1, still);
    const out = Object.entries(await io.hgetall('elimit:eight:k'))
      .filter(([field]) => field.startsWith('h:'))
      .map(([, value]) => Number(value.split(':')[1]));
    expect(out).toHaveLength(8);
    expect(out.reduce((sum, amount) => sum + amount, 0)).toBeLessThanOrEqual(100);
    await Promise.all([...sessions, ...many].map((session) => session.close()));
  });

  it('takes no lease that would not come in again while it lasts', async () => {
    const { client, calls } = counting(io);
    const session = open(client, 'slow');
    for (let i = 0; i < 10; i++) await session.take('k', 1, { rate: 0.01, burst: 1000 });
    expect(calls()).toBeGreaterThanOrEqual(10);
    await session.close();
  });

  it('gives back on close what it has not spent, and is no holder any more', async () => {
    const session = open(io, 'close');
    await session.take('k', 1, quota);
    await session.close();
    const left = await io.hgetall('elimit:close:k');
    expect(Number(left.t)).toBeGreaterThanOrEqual(999);
    expect(Object.keys(left).filter((field) => field.startsWith('h:'))).toEqual([]);
  });

  it('never spends a lease that has ended, and gives it back', async () => {
    const clock = new VirtualClock();
    const { client, calls } = counting(io);
    const session = open(client, 'ended', { leaseMs: 500 }, clock);
    await session.take('k', 1, { rate: 200, burst: 1000 }); // 100 at most: what comes in while it lasts
    const before = calls();
    clock.advanceMs(500); // as after a stop of the process; the timer gives the rest back
    await io.ping();
    expect(calls()).toBe(before + 1);
    expect(Number(await io.hget('elimit:ended:k', 't'))).toBeGreaterThanOrEqual(999);
    await session.take('k', 1, { rate: 200, burst: 1000 });
    expect(calls()).toBe(before + 2);
    await session.close();
  });

  it('asks a few times a second, not for every call, once a key is used beyond its quota', async () => {
    const clock = new VirtualClock();
    const { client, calls } = counting(io);
    const session = open(client, 'beyond', {}, clock);
    await session.take('k', 1000, quota);
    const before = calls();
    for (let i = 0; i < 1000; i++) {
      await session.take('k', 1, quota);
      clock.advance(100); // 10 000 calls a second for 100 ms
    }
    expect(calls() - before).toBeLessThanOrEqual(4); // half of a batch of 100 comes in in 50 ms
    await session.close();
  });

  it('holds no timer once nothing is leased', async () => {
    const clock = new VirtualClock();
    const session = open(io, 'timer', {}, clock);
    await session.take('k', 1, quota);
    expect(clock.pendingTimers).toBe(1);
    clock.advanceMs(2000);
    expect(clock.pendingTimers).toBe(0);
    await session.take('k', 1, quota);
    await session.close();
    expect(clock.pendingTimers).toBe(0);
  });
});

interface DistributedCase {
  name: string;
  config: { capacity: number; tokensPerSecond: number; initialTokens: number };
  steps: {
    timestampMicros: number;
    tokens: number;
    granted: boolean;
    tokensAfter: number;
    retryAfterMicros?: number;
  }[];
}

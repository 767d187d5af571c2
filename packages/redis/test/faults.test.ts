import {
  createRateLimiter,
  type ElimitEvent,
  type RateLimiterOptions,
  type SharedRateLimiter,
} from '@elimit/core';
import { type RedisClient, redisStore } from '@elimit/redis';
import { RedisServer } from '@elimit/testkit';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describeRedis } from './support/describe-redis.js';

/** A client of either library, with its defaults or set not to queue. */
interface Library {
  readonly library: string;
  connect(server: RedisServer): { client: RedisClient; end: () => void };
}
const noise = (): void => {};
const LIBRARIES: Library[] = [
  {
    library: 'ioredis',
    connect: ({ port }) => {
      const client = new Redis(port).on('error', noise);
      return { client, end: () => client.disconnect() };
    },
  },
  {
    library: 'ioredis without its offline queue',
    connect: ({ port }) => {
      const client = new Redis(port, { enableOfflineQueue: false }).on('error', noise);
      return { client, end: () => client.disconnect() };
    },
  },
  {
    library: 'node-redis',
    connect: ({ url }) => {
      const client = createClient({ url, socket: { reconnectStrategy: 50 } }).on('error', noise);
      void client.connect().catch(noise);
      return { client, end: () => client.destroy() };
    },
  },
];

let server: RedisServer;
let ends: (() => void)[] = [];
beforeEach(async () => {
  server = await RedisServer.start();
});
afterEach(async () => {
  for (const end of ends) end();
  ends = [];
  await server.stop();
});

function limiterOn(client: RedisClient, options: Partial<RateLimiterOptions> = {}) {
  const modes: string[] = [];
  const limiter = createRateLimiter({
    rate: 0.001,
    burst: 10_000,
    name: 'api',
    registry: false,
    onEvent: (event: ElimitEvent) => {
      if (event.type === 'mode') modes.push(`${event.from} > ${event.to}`);
    },
    ...options,
    store: redisStore(client),
  });
  return { limiter, modes };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls on, some hundred a second, until the limiter is in `mode`. */
async function callUntil(
  limiter: SharedRateLimiter,
  mode: string,
  tally = { calls: 0, granted: 0 },
) {
  const until = Date.now() + 20_000;
  while (limiter.snapshot().mode !== mode) {
    if (Date.now() > until) throw new Error(`not in mode ${mode}, but ${limiter.snapshot().mode}`);
    await call(limiter, tally);
  }
  return tally;
}

async function call(limiter: SharedRateLimiter, tally = { calls: 0, granted: 0 }) {
  tally.calls += 1;
  void Promise.resolve(limiter.check(1, 'k')).then(
    ({ granted }) => (tally.granted += granted ? 1 : 0),
  );
  await pause(2);
  return tally;
}

describeRedis.each(LIBRARIES)('when Redis is in trouble, $library', ({ connect }) => {
  function open(options: Partial<RateLimiterOptions> = {}) {
    const { client, end } = connect(server);
    ends.push(end);
    return limiterOn(client, options);
  }

  async function openReady(options: Partial<RateLimiterOptions> = {}) {
    const { client, end } = connect(server);
    ends.push(end);
    const state = client as { readonly status?: string; readonly isReady?: boolean };
    while (state.status !== 'ready' && state.isReady !== true) await pause(5);
    return limiterOn(client, options);
  }

  it('is not waited for at the start, and joined once it is up', async () => {
    await server.kill();
    const { limiter, modes } = open();
    expect((await limiter.check(1, 'k')).granted).toBe(true);
    expect(modes).toEqual(['store > local']);
    await server.up();
    await callUntil(limiter, 'store');
    expect(modes).toEqual(['store > local', 'local > store']);
    await limiter.close();
  });

  it('is killed under load: one event each way, and no burst of late counts', async () => {
    const { limiter, modes } = await openReady();
    const tally = { calls: 0, granted: 0 };
    for (let i = 0; i < 50; i++) await call(limiter, tally);
    await server.kill();
    await callUntil(limiter, 'local', tally);
    for (let i = 0; i < 100; i++) await call(limiter, tally);
    await server.up();
    await callUntil(limiter, 'store', tally);
    await pause(50);
    // the new server knows of what was asked since it is back, and a call in flight: not of the 100
    const left = Number(server.command('HGET', 'elimit:api:k', 't') || 10_000);
    expect(left).toBeGreaterThan(9990);
    expect(modes).toEqual(['store > local', 'local > store']);
    expect(tally.granted).toBe(tally.calls);
    await limiter.close();
  });

  it('is stopped: everybody is answered while it stands still, and late grants are given back', async () => {
    const { limiter, modes } = await openReady();
    await limiter.take(1000, { key: 'k' });
    server.pause();
    const answers = await Promise.all(Array.from({ length: 20 }, () => limiter.tryTake(1, 'k')));
    expect(answers.every(Boolean)).toBe(true); // answered, though it still stands
    const after = Array.from({ length: 20 }, () => limiter.check(1, 'k'));
    expect(after.some((answer) => answer instanceof Promise)).toBe(false);
    server.resume();
    await callUntil(limiter, 'store');
    await pause(50);
    const tokens = Number(server.command('HGET', 'elimit:api:k', 't'));
    expect(tokens).toBeGreaterThan(8990); // 20 came too late and are back; the last few calls are not
    expect(tokens).toBeLessThan(9001);
    expect(modes).toEqual(['store > local', 'local > store']);
    await limiter.close();
  });

  it.each([
    {
      it: 'takes no writes',
      spoil: ['CONFIG', 'SET', 'maxmemory', '1'],
      mend: ['CONFIG', 'SET', 'maxmemory', '0'],
    },
    {
      it: 'is a replica',
      spoil: ['REPLICAOF', '127.0.0.1', '1'],
      mend: ['REPLICAOF', 'NO', 'ONE'],
    },
  ])('$it: done without as the policy says, and come back to', async ({ spoil, mend }) => {
    const { limiter, modes } = await openReady({ storePolicy: 'closed' });
    expect((await limiter.check(1, 'k')).granted).toBe(true);
    server.command(...spoil);
    await callUntil(limiter, 'closed');
    expect((await limiter.check(1, 'k')).granted).toBe(false);
    server.command(...mend);
    await callUntil(limiter, 'store');
    expect((await limiter.check(1, 'k')).granted).toBe(true);
    expect(modes).toEqual(['store > closed', 'closed > store']);
    await limiter.close();
  });
});

describeRedis('when Redis wants a password', () => {
  it('is done without, and nothing is thrown past the caller', async () => {
    server.command('CONFIG', 'SET', 'requirepass', 'secret');
    const client = new Redis(server.port).on('error', noise);
    ends.push(() => client.disconnect());
    const { limiter, modes } = limiterOn(client, { storePolicy: 'open' });
    expect((await limiter.check(1, 'k')).granted).toBe(true);
    await callUntil(limiter, 'open');
    expect(modes).toEqual(['store > open']);
    await limiter.close();
  });
});

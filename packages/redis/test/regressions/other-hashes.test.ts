import { createRateLimiter } from '@elimit/core';
import { redisStore } from '@elimit/redis';
import { RedisServer } from '@elimit/testkit';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { describeRedis } from '../support/describe-redis.js';

let server: RedisServer;
let io: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  io = new Redis(server.port);
});
afterAll(async () => {
  io.disconnect();
  await server.stop();
});

describeRedis('another application’s hash at one of our keys', () => {
  it.each<{ it: string; hash: Record<string, string> }>([
    { it: 'with fields of its own', hash: { name: 'Ann' } },
    { it: 'with one of our fields', hash: { t: '5' } },
    { it: 'with our fields, and other things in them', hash: { t: 'a', s: 'b', r: 'c', b: 'd' } },
    { it: 'with what looks like a lease', hash: { t: '1', s: '1', r: '1', b: '1', 'h:1': 'x' } },
  ])('$it, is that key’s trouble, and stays as it is', async ({ hash }) => {
    await io.hset('elimit:api:theirs', hash);
    const codes: string[] = [];
    const limiter = createRateLimiter({
      rate: 1,
      burst: 2,
      name: 'api',
      registry: false,
      store: redisStore(io),
      onEvent: (event) => event.type === 'warning' && codes.push(event.code),
    });
    expect(await limiter.tryTake(2, 'theirs')).toBe(true); // counted here
    expect(await limiter.tryTake(1, 'theirs')).toBe(false);
    expect(limiter.snapshot().mode).toBe('store');
    expect(codes).toEqual(['WARN_RATE_STORE_KEY']);
    expect(await io.hgetall('elimit:api:theirs')).toEqual(hash);
    expect(await io.pttl('elimit:api:theirs')).toBe(-1); // it does not end for us
    await limiter.close();
    await io.del('elimit:api:theirs');
  });
});

import { createRateLimiter } from '@elimit/core';
import { redisStore } from '@elimit/redis';
import { expect, it } from '@jest/globals';
import { describeRedis } from '../support/describe-redis.js';
import { ownRedis } from '../support/own-redis.js';

const own = ownRedis();

describeRedis('another application’s hash at one of our keys', () => {
  it.each<{ it: string; hash: Record<string, string> }>([
    { it: 'with fields of its own', hash: { name: 'Ann' } },
    { it: 'with one of our fields', hash: { t: '5' } },
    { it: 'with our fields, and other things in them', hash: { t: 'a', s: 'b', r: 'c', b: 'd' } },
    { it: 'with what looks like a lease', hash: { t: '1', s: '1', r: '1', b: '1', 'h:1': 'x' } },
  ])('$it, is that key’s trouble, and stays as it is', async ({ hash }) => {
    await own.io.hset('elimit:api:theirs', hash);
    const codes: string[] = [];
    const limiter = createRateLimiter({
      rate: 1,
      burst: 2,
      name: 'api',
      registry: false,
      store: redisStore(own.io),
      storeTimeoutMs: 5000, // however slow the machine is
      onEvent: (event) => event.type === 'warning' && codes.push(event.code),
    });
    expect(await limiter.tryTake(2, 'theirs')).toBe(true); // counted here
    expect(await limiter.tryTake(1, 'theirs')).toBe(false);
    expect(limiter.snapshot().mode).toBe('store');
    expect(codes).toEqual(['WARN_RATE_STORE_KEY']);
    expect(await own.io.hgetall('elimit:api:theirs')).toEqual(hash);
    expect(await own.io.pttl('elimit:api:theirs')).toBe(-1); // it does not end for us
    await limiter.close();
    await own.io.del('elimit:api:theirs');
  });
});

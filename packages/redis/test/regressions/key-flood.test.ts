import { type RedisClient, redisStore } from '@elimit/redis';
import { liveHeap, VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';

/** A server that grants the first request for each key, and has nothing left for a second. */
function server(): RedisClient {
  const seen = new Set<string>();
  return {
    evalsha: (_sha: string, _keys: number, ...args: string[]) => {
      const key = args[0] ?? '';
      if (!key.startsWith('elimit:api:hot')) return Promise.resolve([1, '9', '0', '100', 0, 1]);
      if (seen.has(key)) return Promise.resolve([0, '0', '3600000000', '3600000000', 0, 1]);
      seen.add(key);
      return Promise.resolve([1, '0', '0', '3600000000', 0, 1]);
    },
    eval: () => Promise.reject(new Error('not asked')),
    del: () => Promise.resolve(),
  };
}

it('keys that hold nothing are let go, also while older ones stay blocked', async () => {
  const clock = new VirtualClock();
  const session = redisStore(server()).open({
    name: 'api',
    clock,
    timers: clock,
    random: () => 0.5,
  });
  const quota = { rate: 1, burst: 10 };
  const flood = async (from: number, count: number): Promise<void> => {
    for (let i = from; i < from + count; i++) {
      await session.take(`${i} ${'x'.repeat(240)}`, 1, quota);
      if (i % 10 === 0)
        for (let hot = 0; hot < 4; hot++) await session.take(`hot ${hot}`, 1, quota);
      clock.advanceMs(1);
    }
  };
  await flood(0, 20_000);
  const before = await liveHeap();
  await flood(20_000, 40_000);
  expect((await liveHeap()) - before).toBeLessThan(8_000_000); // 200 bytes a key, less than its text, would be too much
  await session.close();
});

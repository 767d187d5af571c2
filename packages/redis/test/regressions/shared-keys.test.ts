import { createRateLimiter, type RateStoreSession, systemClock, systemTimers } from '@elimit/core';
import { redisStore } from '@elimit/redis';
import { VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import { describeRedis } from '../support/describe-redis.js';
import { ownRedis } from '../support/own-redis.js';

const own = ownRedis();

const context = { clock: systemClock, timers: systemTimers, random: () => 0.5 };

describeRedis('limiters that share their keys', () => {
  it('are told apart when one store serves several of them: no more than a tenth is out in all', async () => {
    const store = redisStore(own.io);
    const quota = { rate: 1000, burst: 1000 };
    const sessions = Array.from({ length: 4 }, () => store.open({ ...context, name: 'one' }));
    for (const session of sessions) await session.take('k', 1, quota);
    expect(sessions.at(-1)?.holders).toBe(4);
    // 4 were spent, 100 may be out on leases; what has come in meanwhile only adds
    expect(Number(await own.io.hget('elimit:one:k', 't'))).toBeGreaterThanOrEqual(1000 - 4 - 100);
    await Promise.all(sessions.map((session) => session.close()));
  });

  it('see within a second that another one has reset a key, however long they were to wait', async () => {
    const clock = new VirtualClock();
    const open = (): RateStoreSession =>
      redisStore(own.io).open({ ...context, clock, timers: clock, name: 'login' });
    const [mine, other] = [open(), open()];
    const quota = { rate: 5 / 86_400, burst: 5 };
    await mine.take('k', 5, quota);
    const refused = await mine.take('k', 1, quota);
    expect(refused.waitUs / 3.6e9).toBeCloseTo(4.8, 2); // a fifth of a day
    await other.reset('k');
    clock.advanceMs(500);
    const again = await mine.take('k', 1, quota);
    expect(again.granted).toBe(false); // not asked for so soon
    expect(refused.waitUs - again.waitUs).toBe(500_000);
    clock.advanceMs(500);
    expect((await mine.take('k', 1, quota)).granted).toBe(true);
  });

  it('of a stopped quota see a reset, too', async () => {
    const clock = new VirtualClock();
    const make = () =>
      createRateLimiter({
        rate: 0,
        burst: 1,
        name: 'stopped',
        store: redisStore(own.io),
        registry: false,
        clock,
        timers: clock,
      });
    const [mine, other] = [make(), make()];
    await mine.check(1, 'k');
    expect(await mine.check(1, 'k')).toMatchObject({ granted: false, retryAfterMs: Infinity });
    await other.reset('k');
    clock.advanceMs(1000);
    expect(await mine.check(1, 'k')).toMatchObject({ granted: true });
  });

  it('give back on close also what is granted to them while they close', async () => {
    const session = redisStore(own.io).open({ ...context, name: 'closing' });
    const quota = { rate: 1000, burst: 1000 };
    const asked = session.take('k', 1, quota); // a lease comes with its answer
    await session.close();
    expect((await asked).granted).toBe(true);
    const left = await own.io.hgetall('elimit:closing:k');
    expect(Number(left.t)).toBeGreaterThanOrEqual(999);
    expect(Object.keys(left).filter((field) => field.startsWith('h:'))).toEqual([]);
  });
});

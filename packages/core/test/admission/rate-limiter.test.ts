import {
  createRateLimiter,
  createRegistry,
  type ElimitEvent,
  type RateLimiterOptions,
  RejectedError,
} from '@elimit/core';
import { TestRateStore, VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

function make(options: RateLimiterOptions & { store?: undefined }) {
  const clock = new VirtualClock();
  const events: ElimitEvent[] = [];
  const limiter = createRateLimiter({
    clock,
    timers: clock,
    random: () => 0.5,
    registry: false,
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { clock, limiter, events };
}

const nameOf = (error: unknown) => (error as Error).name;
const messageOf = (error: unknown) => (error as Error).message;
const codeOf = (error: unknown) => (error as { code: string }).code;

describe('a rate limiter', () => {
  it('spends the burst, then the rate, for each key', () => {
    const { clock, limiter } = make({ rate: 2, burst: 3 });
    expect([1, 2, 3, 4].map(() => limiter.tryTake(1, 'a'))).toEqual([true, true, true, false]);
    expect(limiter.tryTake(1, 'b')).toBe(true);
    expect(limiter.tryTake()).toBe(true);
    clock.advanceMs(500);
    expect([limiter.tryTake(1, 'a'), limiter.tryTake(1, 'a')]).toEqual([true, false]);
  });

  it('says what is left and when to come back', () => {
    const { limiter } = make({ limit: 10, windowMs: 60_000 });
    expect(limiter.check(4, 'a')).toEqual({
      granted: true,
      taken: true,
      remaining: 6,
      burst: 10,
      resetMs: 24_000, // four at one in six seconds
      retryAfterMs: 0,
    });
    expect(limiter.check(8, 'a')).toMatchObject({ granted: false, retryAfterMs: 12_000 });
  });

  it('admits at most burst + rate × time at a window’s edge', () => {
    const { clock, limiter } = make({ rate: 10, burst: 10 });
    const take = (calls: number) =>
      Array.from({ length: calls }, () => limiter.tryTake()).filter(Boolean).length;
    expect(take(1)).toBe(1);
    clock.advanceMs(900);
    expect(take(9)).toBe(9);
    clock.advanceMs(120);
    expect(take(10)).toBe(2); // one was left, and 1.2 have come
  });

  it.each<{ it: string; n: unknown; error: string }>([
    { it: 'less than nothing', n: -1, error: 'n must be a number of at least 0' },
    { it: 'not a number', n: Number.NaN, error: 'n must be a number of at least 0' },
    { it: 'without end', n: Number.POSITIVE_INFINITY, error: 'n must be a number of at least 0' },
    { it: 'text', n: '3', error: 'n must be a number of at least 0' },
    { it: 'null', n: null, error: 'n must be a number of at least 0' },
  ])('refuses a cost that is $it, and takes nothing', async ({ n, error }) => {
    const { limiter } = make({ rate: 1, burst: 5 });
    expect(() => limiter.tryTake(n as number)).toThrow(error);
    expect(() => limiter.check(n as number)).toThrow(error);
    expect(() => limiter.reserve(n as number)).toThrow(error);
    expect(() => limiter.refund(n as number)).toThrow(error);
    await expect(limiter.take(n as number)).rejects.toThrow(error);
    expect(limiter.tokens()).toBe(5);
  });

  it('grants nothing always, and more than the burst never', async () => {
    const { limiter } = make({ limit: 0 });
    expect(limiter.tryTake(0)).toBe(true);
    expect(limiter.tryTake(1)).toBe(false);
    expect(limiter.check(1).retryAfterMs).toBe(Number.POSITIVE_INFINITY);
    expect(limiter.check(2 ** 53).granted).toBe(false);
    expect(limiter.reserve(1)).toBe(Number.POSITIVE_INFINITY);
    await expect(limiter.take(1)).rejects.toThrow('at most the burst, 0, got 1');
  });

  it('counts odd keys, and very long ones by their hash', () => {
    const { limiter } = make({ rate: 1, burst: 1 });
    const long = 'x'.repeat(1_000_000);
    for (const key of ['', '__proto__', 'a\0b', long, `${long}y`]) {
      expect([limiter.tryTake(1, key), limiter.tryTake(1, key)]).toEqual([true, false]);
    }
    expect(() => limiter.tryTake(1, 7 as unknown as string)).toThrow('key must be a string');
  });

  it.each<{ it: string; options: Record<string, unknown>; error: string }>([
    { it: 'no rate', options: {}, error: 'rate.rate is missing' },
    { it: 'a negative rate', options: { rate: -1 }, error: 'rate.rate must be a number from 0' },
    { it: 'a rate beyond 1e9', options: { rate: 2e9 }, error: 'from 0 to 1000000000' },
    { it: 'both pairs', options: { rate: 1, limit: 1 }, error: 'exclude each other' },
    { it: 'half a call', options: { limit: 0.5 }, error: 'rate.limit must be a whole number' },
    { it: 'a window of 0', options: { limit: 1, windowMs: 0 }, error: 'rate.windowMs' },
    { it: 'a window alone', options: { rate: 1, windowMs: 5 }, error: 'needs rate.limit' },
    {
      it: 'an unknown name',
      options: { rate: 1, bursts: 5 },
      error: 'rate.bursts is not an option',
    },
    {
      it: 'a start-up burst and a warm-up',
      options: { rate: 1, warmUpMs: 1, startup: { burst: 5, forMs: 1 } },
      error: 'exclude each other',
    },
    {
      it: 'a start-up burst below the burst',
      options: { rate: 9, startup: { burst: 5, forMs: 1 } },
      error: 'rate.startup.burst',
    },
    {
      it: 'a front without a store',
      options: { rate: 1, front: { rate: 1, burst: 1 } },
      error: 'needs rate.store',
    },
    {
      it: 'a store without a name: two such limits would share their tokens there',
      options: { rate: 1, store: new TestRateStore() },
      error: 'rate.name must be given with rate.store, got undefined',
    },
    { it: 'a store that is none', options: { rate: 1, store: {} }, error: 'must be a RateStore' },
    { it: 'NaN for a warm-up', options: { rate: 1, warmUpMs: Number.NaN }, error: 'rate.warmUpMs' },
  ])('refuses $it at construction', ({ options, error }) => {
    expect(() => createRateLimiter(options as RateLimiterOptions)).toThrow(error);
  });

  it.each([
    { limit: 100, windowMs: 30 * 86_400_000 },
    { limit: 100, windowMs: 2 ** 31 },
    { limit: 100, windowMs: 1 },
    { limit: 1, windowMs: 0.5 },
    { rate: 0.001, burst: 1 },
    { rate: 1e9, burst: 1e9 },
  ])('is right with %j', async (options) => {
    const { clock, limiter } = make(options);
    const { burst, rate } = limiter;
    expect(limiter.tryTake(burst)).toBe(true);
    expect(limiter.tryTake(burst)).toBe(false);
    const waited = limiter.take(burst);
    await clock.advanceMsAsync((burst / rate) * 1000 + 0.001);
    await waited;
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('waiting for tokens', () => {
  it('serves in the order of the calls, each when its tokens are there', async () => {
    const { clock, limiter } = make({ rate: 10, burst: 2 });
    const served: string[] = [];
    const take = (name: string, n: number) =>
      limiter.take(n).then(() => served.push(`${name} at ${clock.nowUs() / 1000 - 1000}`));
    const all = Promise.all([take('a', 2), take('b', 2), take('c', 0.5), take('d', 1)]);
    expect(limiter.tryTake(0.1)).toBe(false); // not past those who wait
    expect(limiter.snapshot().waiting).toBe(3);
    await clock.advanceMsAsync(1000);
    await all;
    expect(served).toEqual(['a at 0', 'b at 200', 'c at 250', 'd at 350']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('frees the places of those who abort at once, and keeps the order of the rest', async () => {
    const { clock, limiter } = make({ rate: 1, burst: 1 });
    limiter.tryTake();
    const controllers = Array.from({ length: 10 }, () => new AbortController());
    const reasons = controllers.map(({ signal }) => limiter.take(1, { signal }).catch(nameOf));
    for (const controller of controllers) controller.abort();
    expect(await Promise.all(reasons)).toEqual(Array(10).fill('AbortError'));
    const served: number[] = [];
    const later = Array.from({ length: 10 }, (_, i) => limiter.take(1).then(() => served.push(i)));
    await clock.advanceMsAsync(10_000);
    await Promise.all(later);
    expect(served).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await expect(limiter.take(1, { signal: AbortSignal.abort(new Error('mine')) })).rejects.toThrow(
      'mine',
    );
    expect(limiter.snapshot()).toMatchObject({ waiting: 0, granted: 11 });
  });

  it('refuses at once what would come too late, and others when their time is over', async () => {
    const { clock, limiter } = make({ rate: 10, burst: 1 });
    limiter.tryTake();
    await expect(limiter.take(1, { maxWaitMs: 99 })).rejects.toMatchObject({
      code: 'ERR_REJECTED',
      status: 429,
      retryAfterMs: 100,
    });
    const paused = limiter.take(1, { maxWaitMs: 150 });
    limiter.setRate(0);
    const refused = paused.catch((error: unknown) => RejectedError.is(error));
    await clock.advanceMsAsync(150);
    expect(await refused).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  it('wakes those who wait when the rate is raised, and turns away what no longer fits', async () => {
    const { clock, limiter } = make({ rate: 0, burst: 4 });
    limiter.tryTake(4);
    const small = limiter.take(1);
    const large = limiter.take(4).catch(messageOf);
    await clock.advanceMsAsync(10_000);
    limiter.setRate(100);
    limiter.setBurst(2);
    await clock.advanceMsAsync(10);
    await small;
    expect(await large).toContain('at most the burst, 2, got 4');
  });

  it('turns everybody away when it is closed, twice without harm', async () => {
    const registry = createRegistry();
    const { clock, limiter } = make({ rate: 1, burst: 1, registry });
    expect(registry.sources()).toHaveLength(1);
    limiter.tryTake();
    const waiting = limiter.take().catch(codeOf);
    await limiter.close();
    await limiter.close();
    expect(await waiting).toBe('ERR_CLOSED');
    expect(registry.sources()).toHaveLength(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('serves exactly what is due over a virtual hour', async () => {
    const { clock, limiter } = make({ rate: 7, burst: 1 });
    let served = 0;
    const takeOn = async (): Promise<void> => {
      await limiter.take();
      served += 1;
      await takeOn();
    };
    void takeOn().catch(() => undefined);
    for (let minute = 0; minute < 60; minute++) {
      for (let i = 0; i < 60 * 7 + 7; i++) {
        clock.advanceMs(60_000 / (60 * 7 + 7));
        await Promise.resolve()
          .then(() => undefined)
          .then(() => undefined);
      }
    }
    expect(served).toBeGreaterThan(7 * 3600 * 0.999);
    expect(served).toBeLessThanOrEqual(7 * 3600 + 1);
    await limiter.close();
  });
});

describe('changes under load', () => {
  it('clips a full bucket to the new burst and never shows less than nothing', () => {
    const { limiter } = make({ rate: 1000, burst: 1000 });
    limiter.tryTake(1, 'a');
    limiter.configure({ rate: 10, burst: 10 });
    expect(limiter.tokens('a')).toBe(10);
    expect(limiter.check(10, 'a')).toMatchObject({ granted: true, remaining: 0 });
    expect(limiter.check(1, 'a')).toMatchObject({
      granted: false,
      remaining: 0,
      retryAfterMs: 100,
    });
  });

  it('pays time until a change at the old rate', () => {
    const { clock, limiter } = make({ rate: 10, burst: 100 });
    limiter.tryTake(100);
    clock.advanceMs(1000);
    limiter.setRate(1);
    clock.advanceMs(1000);
    expect(limiter.tokens()).toBe(11);
    expect(() => limiter.setRate(-1)).toThrow('rate must be a number from 0');
    expect(() => limiter.configure({ rate: 5, burst: Number.NaN })).toThrow('rate.burst');
    expect(limiter.rate).toBe(1);
  });

  it('has the start-up burst for its time only', () => {
    const { clock, limiter } = make({ rate: 10, burst: 10, startup: { burst: 50, forMs: 3000 } });
    expect(limiter.tryTake(50, 'a')).toBe(true);
    clock.advanceMs(2999);
    expect(limiter.burst).toBe(50);
    clock.advanceMs(1);
    expect(limiter.tokens('a')).toBe(10); // 30 had come in
    expect(limiter.tokens('new')).toBe(10);
  });

  it('stands still when the clock steps back', () => {
    const clock = { us: 3_600_000_000, nowUs: () => clock.us };
    const { limiter } = make({ rate: 1, burst: 1, clock });
    limiter.tryTake();
    clock.us = 0;
    expect(limiter.check().retryAfterMs).toBe(1000);
    clock.us = 3_601_000_000;
    expect(limiter.tryTake()).toBe(true);
  });
});

describe('what it tells', () => {
  it('tells of refusals once a second, with the key hashed', () => {
    const { clock, limiter, events } = make({ rate: 1, burst: 1 });
    for (let i = 0; i < 4; i++) limiter.tryTake(1, 'secret');
    clock.advanceMs(1000);
    limiter.tryTake(1, 'secret');
    limiter.tryTake(1, 'secret');
    expect(events).toEqual([
      {
        type: 'reject',
        name: 'rate',
        reason: 'rate',
        count: 1,
        key: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
      {
        type: 'reject',
        name: 'rate',
        reason: 'rate',
        count: 3,
        key: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
    ]);
    const open = make({ rate: 0, burst: 0, revealKeys: true });
    open.limiter.tryTake(1, 'me');
    expect(open.events).toMatchObject([{ key: 'me' }]);
  });

  it('lets everything through in a dry run, and counts', async () => {
    const { limiter } = make({ limit: 1, dryRun: true });
    expect([limiter.tryTake(), limiter.tryTake(), limiter.check().granted]).toEqual([
      true,
      true,
      true,
    ]);
    await limiter.take();
    expect(limiter.reserve(5)).toBe(0);
    expect(limiter.snapshot()).toMatchObject({ granted: 1, rejected: 0, wouldReject: 4 });
  });

  it('shows its numbers and options', () => {
    const { limiter } = make({ rate: 5, burst: 10, name: 'api' });
    limiter.tryTake(4);
    expect(limiter.snapshot()).toEqual({
      type: 'rateLimiter',
      name: 'api',
      rate: 5,
      burst: 10,
      tokens: 6,
      keys: 1,
      granted: 1,
      rejected: 0,
      wouldReject: 0,
      waiting: 0,
      mode: 'memory',
    });
    limiter.tryTake(1, 'a');
    expect(limiter.snapshot()).toMatchObject({ tokens: -1, keys: 1 });
    expect(limiter.flags()).toContainEqual({
      name: 'burst',
      value: 10,
      default: undefined,
      live: true,
    });
  });
});

describe('the strict grade', () => {
  it('takes as Guava does: cold, one token, and the next one pays', () => {
    const { clock, limiter } = make({ rate: 10, warmUpMs: 2000, strict: true });
    expect(limiter.check(1).granted).toBe(true);
    expect(limiter.check(1)).toMatchObject({ granted: false, retryAfterMs: 290 });
    clock.advanceMs(290);
    expect(limiter.tryTake(100)).toBe(true); // the trap: charged to whoever comes next
    expect(limiter.check(1).retryAfterMs).toBeGreaterThan(9000);
  });

  it('serves a line of takes at Guava’s times', async () => {
    const { clock, limiter } = make({ rate: 10, warmUpMs: 2000, strict: true });
    const at: number[] = [];
    const takes = Array.from({ length: 4 }, () =>
      limiter.take().then(() => at.push(clock.nowUs() - 1_000_000)),
    );
    await clock.advanceMsAsync(1000);
    await Promise.all(takes);
    expect(at).toEqual([0, 290_000, 560_000, 810_000]);
  });
});

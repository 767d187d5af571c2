import { runInNewContext } from 'node:vm';
import {
  ClosedError,
  createRateLimiter,
  type ElimitEvent,
  type RateLimiterOptions,
  type RateStoreSession,
  type StoreAnswer,
} from '@elimit/core';
import { settle, TestRateStore, VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

function local(options: Partial<RateLimiterOptions> & { store?: undefined }) {
  const clock = new VirtualClock();
  const base = { clock, timers: clock, registry: false } as const;
  return { clock, limiter: createRateLimiter({ ...base, rate: 10, burst: 10, ...options }) };
}

function shared(session: Partial<RateStoreSession>, options: Partial<RateLimiterOptions> = {}) {
  const clock = new VirtualClock();
  const events: ElimitEvent[] = [];
  const whole: RateStoreSession = {
    take: () => ({ granted: true, remaining: 1, waitUs: 0, fullInUs: 0 }),
    refund() {},
    reset: () => Promise.resolve(),
    probe: () => Promise.resolve(),
    holders: 1,
    close: () => Promise.resolve(),
    ...session,
  };
  const limiter = createRateLimiter({
    rate: 1,
    burst: 2,
    clock,
    timers: clock,
    registry: false,
    onEvent: (event) => events.push(event),
    ...options,
    store: { open: () => whole },
  });
  return { clock, limiter, events };
}

const isClosed = (error: unknown): boolean => ClosedError.is(error);

describe('a burst that is set while the start-up’s holds', () => {
  const startup = { burst: 100, forMs: 1000 };

  it.each<{ it: string; change: Record<string, unknown>; during: number; after: [number, number] }>(
    [
      { it: 'a burst', change: { burst: 50 }, during: 50, after: [10, 50] },
      { it: 'the start-up’s own', change: { burst: 100 }, during: 100, after: [10, 100] },
      { it: 'rate and burst', change: { rate: 20, burst: 30 }, during: 30, after: [20, 30] },
      {
        it: 'limit and windowMs',
        change: { limit: 60, windowMs: 1000 },
        during: 60,
        after: [60, 60],
      },
      { it: 'a rate alone', change: { rate: 20 }, during: 100, after: [20, 10] },
    ],
  )('stands after it, too: $it', ({ change, during, after }) => {
    const { clock, limiter } = local({ startup });
    clock.advanceMs(500);
    limiter.configure(change);
    expect(limiter.burst).toBe(during);
    clock.advanceMs(600);
    limiter.tryTake(0);
    expect([limiter.rate, limiter.burst]).toEqual(after);
  });

  it('stands after it when set by setBurst; a bad one changes nothing', () => {
    const { clock, limiter } = local({ startup });
    expect(() => limiter.setBurst(-1)).toThrow('burst must be a number from 0 to 1000000000000');
    expect(() => limiter.configure({ burst: 50, rate: -1 })).toThrow('rate.rate');
    expect(limiter.burst).toBe(100);
    limiter.setBurst(50);
    clock.advanceMs(1000);
    limiter.tryTake(0);
    expect(limiter.burst).toBe(50);
    const untouched = local({ startup });
    untouched.clock.advanceMs(1000);
    expect(untouched.limiter.burst).toBe(10); // also if nobody has asked since
  });
});

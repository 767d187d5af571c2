import { getEventListeners } from 'node:events';
import { settle, VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import { CircuitBreaker, createGuard, createRateLimiter } from '../../src/index.js';

// Node warns of a leak from the eleventh listener of one signal on.
it.each<{ it: string; calls: (signal: AbortSignal, clock: VirtualClock) => Promise<unknown>[] }>([
  {
    it: 'fifty guards',
    calls: (signal, clock) =>
      Array.from({ length: 50 }, () =>
        createGuard({ limit: 1, clock, timers: clock, registry: false }).execute(
          () => new Promise(() => {}),
          { signal },
        ),
      ),
  },
  {
    it: 'fifty calls of a breaker',
    calls: (signal, clock) => {
      const breaker = new CircuitBreaker({ clock, timers: clock, registry: false });
      return Array.from({ length: 50 }, () =>
        breaker.execute(() => new Promise(() => {}), { signal }),
      );
    },
  },
  {
    it: 'fifty who wait for tokens',
    calls: (signal, clock) => {
      const limiter = createRateLimiter({
        rate: 1,
        burst: 1,
        clock,
        timers: clock,
        registry: false,
      });
      limiter.tryTake(1);
      return Array.from({ length: 50 }, () => limiter.take(1, { signal }));
    },
  },
])('$it share one listener of one signal, and all hear its reason', async ({ calls }) => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const ends = calls(controller.signal, clock).map((call) =>
    call.catch((reason: unknown) => reason),
  );
  await settle();
  expect(getEventListeners(controller.signal, 'abort')).toHaveLength(1);
  const reason = new Error('the caller left');
  controller.abort(reason);
  expect(new Set(await Promise.all(ends))).toEqual(new Set([reason]));
  expect(clock.pendingTimers).toBe(0);
});

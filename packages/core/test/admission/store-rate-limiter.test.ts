import { createRateLimiter, type ElimitEvent, type RateLimiterOptions } from '@elimit/core';
import { settle, TestRateStore, VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

function make(options: Partial<RateLimiterOptions> = {}) {
  const clock = new VirtualClock();
  const store = new TestRateStore();
  const events: ElimitEvent[] = [];
  const base = { rate: 10, burst: 10, name: 'api', random: () => 0.5 };
  const build = () =>
    createRateLimiter({
      ...base,
      clock,
      timers: clock,
      registry: false,
      onEvent: (event) => events.push(event),
      ...options,
      store,
    });
  return { clock, store, events, limiter: build(), build };
}

const modes = (events: ElimitEvent[]) =>
  events.flatMap((event) =>
    event.type === 'mode' ? [`${event.from} > ${event.to}: ${event.cause}`] : [],
  );

describe('a limiter on a shared store', () => {
  it('counts with all others on the store, key by key', async () => {
    const { limiter, build } = make();
    const other = build();
    expect(await limiter.tryTake(6, 'a')).toBe(true);
    expect(await other.tryTake(6, 'a')).toBe(false);
    expect(await other.check(4, 'a')).toMatchObject({ granted: true, remaining: 0, resetMs: 1000 });
    expect(await other.tryTake(6, 'b')).toBe(true);
  });

  it('asks nobody about nothing, nor about more than the burst', async () => {
    const { limiter, store } = make();
    expect(limiter.check(0)).toMatchObject({ granted: true });
    expect(limiter.check(11)).toMatchObject({
      granted: false,
      retryAfterMs: Number.POSITIVE_INFINITY,
    });
    await expect(limiter.take(11)).rejects.toThrow('at most the burst, 10, got 11');
    expect(store.takes).toBe(0);
  });

  it('asks a looser limit of its own first, and pays back what the store refuses', async () => {
    const { limiter, store } = make({ front: { rate: 1, burst: 3 }, rate: 1, burst: 2 });
    const granted = [];
    for (let i = 0; i < 5; i++) granted.push((await limiter.check(1, 'a')).granted);
    expect(granted).toEqual([true, true, false, false, false]);
    expect(store.takes).toBe(5); // one is left in front, so the store was asked each time
    expect((await limiter.check(2, 'a')).granted).toBe(false);
    expect(store.takes).toBe(5); // two are not
  });

  it('waits in order for one key, and gives back what came after its waiter had left', async () => {
    const { clock, limiter, store } = make();
    await limiter.take(10, { key: 'a' });
    const served: string[] = [];
    const gone = new AbortController();
    const all = [
      limiter.take(1, { key: 'a' }).then(() => served.push('first')),
      limiter.take(1, { key: 'a', signal: gone.signal }).catch(() => served.push('gone')),
      limiter.take(2, { key: 'a' }).then(() => served.push('second')),
    ];
    await settle();
    gone.abort();
    await clock.advanceMsAsync(1000);
    await Promise.all(all);
    expect(served).toEqual(['gone', 'first', 'second']);
    expect(store.tokens('api', 'a', clock.nowUs())).toBe(7);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a store that fails', () => {
  it.each([
    { policy: 'local' as const, granted: [true, true, false] },
    { policy: 'open' as const, granted: [true, true, true] },
    { policy: 'closed' as const, granted: [false, false, false] },
  ])('is done without as the policy $policy says, with one event', async ({ policy, granted }) => {
    const { limiter, store, events } = make({ storePolicy: policy, rate: 1, burst: 2 });
    store.health = 'refuse';
    const got = [];
    for (let i = 0; i < 3; i++) got.push(await limiter.tryTake(1, 'a'));
    expect(got).toEqual(granted);
    expect(modes(events)).toEqual([`store > ${policy}: refused`]);
    expect(limiter.snapshot().mode).toBe(policy);
  });

  it('is waited for no longer than the bound, and not again by those who come after', async () => {
    const { clock, limiter, store, events } = make({ storeTimeoutMs: 50 });
    store.health = 'hang';
    let settled = false;
    const first = Promise.resolve(limiter.check(1, 'a')).finally(() => (settled = true));
    await clock.advanceMsAsync(49.9);
    expect(settled).toBe(false);
    await clock.advanceMsAsync(0.1);
    expect(settled).toBe(true);
    expect((await first).granted).toBe(true);
    const next = limiter.check(1, 'a');
    expect(next).not.toBeInstanceOf(Promise);
    expect(modes(events)).toEqual(['store > local: timeout']);
    expect(store.takes).toBe(1);
  });

  it('is come back to by itself, and what it grants too late is given back', async () => {
    const { clock, limiter, store, events } = make({ rate: 0.001, burst: 10 });
    store.health = 'hang';
    const late = limiter.check(4, 'a');
    await clock.advanceMsAsync(50);
    await late;
    await clock.advanceMsAsync(100);
    void limiter.check(1, 'a'); // too soon for a question
    store.health = 'up';
    await settle();
    expect(store.tokens('api', 'a', clock.nowUs())).toBeCloseTo(10, 3);
    expect(limiter.snapshot().mode).toBe('local');
    await clock.advanceMsAsync(100); // 200 ms since it failed
    void limiter.check(1, 'a');
    await settle();
    expect(limiter.snapshot().mode).toBe('store');
    expect(await limiter.tryTake(10, 'a')).toBe(true);
    expect(modes(events)).toEqual(['store > local: timeout', 'local > store: answered']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is asked one question at a time, ever more rarely', async () => {
    const { clock, limiter, store } = make();
    store.health = 'refuse';
    await limiter.check();
    let probes = 0;
    store.health = 'hang';
    const seen: number[] = [];
    const startUs = clock.nowUs();
    for (let ms = 0; ms < 10_000; ms += 10) {
      const before = clock.pendingTimers;
      void limiter.check();
      if (clock.pendingTimers > before) {
        probes += 1;
        seen.push(Math.round((clock.nowUs() - startUs) / 1000));
      }
      await clock.advanceMsAsync(10);
    }
    expect(probes).toBe(7);
    expect(seen.slice(0, 4)).toEqual([200, 650, 1500, 3150]); // 200, 400, 800, 1600 after the bound of the one before
  });

  it('leaves each process its share of the quota', async () => {
    const { limiter, store } = make({ rate: 1, burst: 8 });
    store.holders = 4;
    store.health = 'refuse';
    const granted = [];
    for (let i = 0; i < 4; i++) granted.push(await limiter.tryTake(1, 'a'));
    expect(granted).toEqual([true, true, false, false]);
    expect(await limiter.tryTake(8, 'b')).toBe(true); // costs the whole share
  });

  it('is not given up for one odd key', async () => {
    const { limiter, store, events } = make();
    store.oddKeys.add('odd');
    expect(await limiter.tryTake(1, 'odd')).toBe(true);
    expect(await limiter.tryTake(1, 'odd')).toBe(true);
    expect(limiter.snapshot().mode).toBe('store');
    expect(events).toEqual([
      {
        type: 'warning',
        code: 'WARN_RATE_STORE_KEY',
        name: 'api',
        message: 'something else lives here',
      },
    ]);
  });

  it('changes its policy while it is down', async () => {
    const { limiter, store, events } = make();
    store.health = 'refuse';
    await limiter.check();
    limiter.configure({ storePolicy: 'closed' });
    expect(limiter.check()).toMatchObject({ granted: false, retryAfterMs: 1000 });
    expect(modes(events)).toEqual(['store > local: refused', 'local > closed: configured']);
  });
});

import { runInNewContext } from 'node:vm';
import {
  ClosedError,
  createRateLimiter,
  type ElimitEvent,
  type RateLimiter,
  type RateLimiterOptions,
  type RateStoreSession,
  type SharedRateLimiter,
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
  };
  Object.defineProperties(whole, Object.getOwnPropertyDescriptors(session));
  const limiter = createRateLimiter({
    rate: 1,
    burst: 2,
    clock,
    timers: clock,
    registry: false,
    onEvent: (event) => events.push(event),
    ...options,
    name: 'api',
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

  it.each<{ it: string; grow: (limiter: RateLimiter) => void }>([
    { it: 'setBurst', grow: (limiter) => limiter.setBurst(80) },
    { it: 'configure', grow: (limiter) => limiter.configure({ burst: 80 }) },
  ])('gives no tokens of a start-up that is over, by $it', ({ grow }) => {
    const { clock, limiter } = local({ startup });
    clock.advanceMs(1000);
    grow(limiter); // the first to ask since
    expect(limiter.tokens()).toBe(10);
    expect(limiter.burst).toBe(80);
  });
});

describe('take and close', () => {
  it('refuses who would wait for a limiter that is closed', async () => {
    const { clock, limiter } = local({ rate: 1, burst: 1 });
    await limiter.close();
    await limiter.take();
    expect(await limiter.take().catch(isClosed)).toBe(true);
    expect(limiter.snapshot().waiting).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it.each([
    { it: 'refuses', burst: 1, tokens: 0 },
    { it: 'grants, and gives that back', burst: 2, tokens: 1 },
  ])('refuses who is asking a store that $it', async ({ burst, tokens }) => {
    const clock = new VirtualClock();
    const store = new TestRateStore();
    const limiter = createRateLimiter({
      rate: 0,
      burst,
      name: 'api',
      clock,
      timers: clock,
      registry: false,
      store,
    });
    await limiter.take();
    store.health = 'hang';
    const asking = limiter.take().catch(isClosed);
    await settle();
    await limiter.close();
    store.health = 'up';
    expect(await asking).toBe(true);
    expect(store.takes).toBe(2);
    await clock.advanceMsAsync(10_000);
    expect(store.takes).toBe(2); // and nobody asks on
    expect(store.tokens('api', '', clock.nowUs())).toBe(tokens);
    expect(await limiter.take().catch(isClosed)).toBe(true);
    expect(store.takes).toBe(2);
    expect(clock.pendingTimers).toBe(0);
  });

  it('sets no alarm for a line that has left while the store was asked', async () => {
    const { clock, limiter } = shared({
      take: () =>
        Promise.resolve({ granted: false, remaining: 0, waitUs: 1_000_000, fullInUs: 1e6 }),
    });
    const gone = new AbortController();
    const waiting = limiter.take(1, { signal: gone.signal }).catch(() => 'gone');
    await settle();
    clock.advanceMs(1000); // it is asked for, again
    gone.abort();
    expect(await waiting).toBe('gone');
    await settle();
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a dry run', () => {
  it('says that it took nothing for what it lets through', async () => {
    const { limiter } = local({ limit: 1, rate: undefined, burst: undefined, dryRun: true });
    const told = [limiter.check(), limiter.check()];
    expect(told.map(({ granted, taken }) => [granted, taken])).toEqual([
      [true, true],
      [true, false],
    ]);
    const refuses = { granted: false, remaining: 0, waitUs: 5, fullInUs: 5 };
    const { limiter: onStore } = shared({ take: () => refuses }, { dryRun: true });
    expect(await onStore.check()).toMatchObject({ granted: true, taken: false });
  });
});

describe('a store that is away', () => {
  it.each([
    { storePolicy: 'open', taken: false },
    { storePolicy: 'local', taken: true },
  ] as const)('$storePolicy: says whether what it grants was counted', async (row) => {
    const down = () => Promise.reject(new Error('away'));
    const { limiter } = shared({ take: down }, { storePolicy: row.storePolicy });
    expect(await limiter.check()).toMatchObject({ granted: true, taken: row.taken });
  });
});

describe('a store of somebody else’s', () => {
  const answer = (partial: object) =>
    ({ granted: true, remaining: 1, waitUs: 0, fullInUs: 0, ...partial }) as StoreAnswer;

  it.each<{ it: string; take: () => unknown }>([
    { it: 'nothing', take: () => undefined },
    { it: 'null, in time', take: () => Promise.resolve(null) },
    { it: 'an empty object', take: () => ({}) },
    { it: 'text, in time', take: () => Promise.resolve('yes') },
    { it: 'a grant of text', take: () => answer({ granted: 'yes' }) },
    { it: 'a wait of NaN', take: () => Promise.resolve(answer({ waitUs: Number.NaN })) },
    { it: 'a wait below 0', take: () => answer({ granted: false, waitUs: -1 }) },
    { it: 'no number of tokens', take: () => answer({ remaining: '1' }) },
  ])('that answers $it has failed', async ({ take }) => {
    const { limiter } = shared({ take } as Partial<RateStoreSession>);
    const granted = [];
    for (let i = 0; i < 3; i++) granted.push((await limiter.check()).granted);
    expect(granted).toEqual([true, true, false]); // the policy: counted here
    expect(limiter.snapshot().mode).toBe('local');
  });

  it.each<{ it: string; holders: () => unknown }>([
    {
      it: 'throws',
      holders: () => {
        throw new Error('boom');
      },
    },
    { it: 'are a bigint', holders: () => 5n },
    { it: 'are text', holders: () => '5' },
  ])('whose holders $it leaves this process the whole quota', async ({ holders }) => {
    const boom = (): never => {
      throw new Error('boom');
    };
    const { limiter } = shared(Object.defineProperty({ take: boom }, 'holders', { get: holders }));
    const granted = [];
    for (let i = 0; i < 3; i++) granted.push((await limiter.check()).granted);
    expect(granted).toEqual([true, true, false]);
  });

  it('says in its event what it was answered', async () => {
    const { limiter, events } = shared({ take: () => 7 as unknown as StoreAnswer });
    await limiter.check();
    expect(events).toMatchObject([{ type: 'mode', cause: 'the store answered 7 to take' }]);
  });

  it('may promise with a promise of another realm', async () => {
    const Other = runInNewContext('Promise') as PromiseConstructor;
    const { limiter } = shared({ take: () => Other.resolve(answer({})) });
    expect(await limiter.check()).toMatchObject({ granted: true, remaining: 1 });
    expect(limiter.snapshot().mode).toBe('store');
  });

  it('fails no call by what it throws in refund, probe and close, nor by a share of NaN', async () => {
    const boom = (): never => {
      throw new Error('boom');
    };
    const { clock, limiter } = shared({ refund: boom, probe: boom, close: boom });
    limiter.refund();
    const down = shared({ take: boom, probe: boom, close: boom, holders: Number.NaN });
    const granted = [];
    for (let i = 0; i < 3; i++) {
      granted.push((await down.limiter.check()).granted);
      down.clock.advanceMs(300); // it is time to ask whether it is up again
    }
    expect(granted).toEqual([true, true, false]);
    await Promise.all([limiter.close(), down.limiter.close()]);
    expect(clock.pendingTimers).toBe(0);
  });

  it.each<{ it: string; session: unknown; error: string }>([
    {
      it: 'nothing',
      session: undefined,
      error: 'rate.store.open() must be an object, got undefined',
    },
    {
      it: 'a promise',
      session: Promise.resolve(),
      error: 'rate.store.open().take must be a function, got undefined',
    },
    {
      it: 'half a session',
      session: { take: () => undefined },
      error: 'rate.store.open().refund must be a function, got undefined',
    },
  ])('that opens $it is refused at construction', ({ session, error }) => {
    const store = { open: () => session as RateStoreSession };
    expect(() => createRateLimiter({ rate: 1, registry: false, name: 'api', store })).toThrow(
      error,
    );
  });
});

describe('options of a rate limiter', () => {
  it.each<{ options: Record<string, unknown>; error: string }>([
    { options: { clock: {} }, error: 'rate.clock.nowUs must be a function, got undefined' },
    { options: { timers: {} }, error: 'rate.timers.setTimeout must be a function, got undefined' },
    { options: { timers: 5 }, error: 'rate.timers must be an object, got 5' },
    { options: { random: 5 }, error: 'rate.random must be a function, got 5' },
    { options: { registry: {} }, error: 'rate.registry.add must be a function, got undefined' },
    { options: { registry: 5 }, error: 'rate.registry must be an object, got 5' },
    { options: { onEvent: 0 }, error: 'rate.onEvent must be a function, got 0' },
    {
      options: { rate: 1e-320 },
      error: 'rate.rate must be 0 or a number from 1e-12 to 1000000000, got 1e-320',
    },
    { options: { rate: 9e-13 }, error: 'rate.rate must be 0 or a number from 1e-12' },
    {
      options: { warmUpMs: 1e-320 },
      error: 'rate.warmUpMs must be 0 or a number from 0.0001 to 86400000, got 1e-320',
    },
    {
      options: { rate: 0, strict: true },
      error: 'rate.rate must be more than 0 with rate.strict, got 0',
    },
  ])('are refused by name: $error', ({ options, error }) => {
    const all = { rate: 1, registry: false, ...options };
    expect(() => createRateLimiter(all as RateLimiterOptions)).toThrow(error);
  });

  it('are refused while it runs, too', () => {
    const { limiter } = local({});
    expect(() => limiter.setRate(1e-13)).toThrow('rate must be 0 or a number from 1e-12');
    expect(() => limiter.configure({ storePolicy: 'open' })).toThrow(
      'rate.storePolicy needs rate.store, got "open" without one',
    );
    expect(() => limiter.configure({ storeTimeoutMs: 5 })).toThrow('rate.storeTimeoutMs needs');
  });

  it.each([
    {},
    { warmUpMs: 1e-4 },
    { warmUpMs: 86_400_000, coldFactor: 1000 },
    { strict: true },
    { strict: true, warmUpMs: 1e-4 },
    { strict: true, warmUpMs: 86_400_000 },
  ])('may ask for a token in thirty thousand years: %j', (options) => {
    const { limiter } = local({ rate: 1e-12, burst: 1, ...options });
    const first = limiter.check();
    const second = limiter.check();
    for (const { remaining, resetMs, retryAfterMs } of [first, second]) {
      expect([remaining, resetMs, retryAfterMs]).not.toContain(Number.NaN);
    }
    expect([second.granted, limiter.tokens()]).not.toContain(Number.NaN);
  });

  it.each<{ options: unknown; error: string }>([
    { options: { maxWait: 1 }, error: 'take.maxWait is not an option; known: key, signal' },
    { options: { maxWaitMs: -1 }, error: 'take.maxWaitMs must be a number of at least 0, got -1' },
    {
      options: { signal: {} },
      error: 'take.signal.addEventListener must be a function, got undefined',
    },
    { options: 'a key', error: 'take must be an object, got "a key"' },
    { options: null, error: 'take must be an object, got null' },
  ])('of take are refused by name, and nothing is taken: $error', async ({ options, error }) => {
    const { limiter } = local({});
    await expect(limiter.take(1, options as object)).rejects.toThrow(error);
    expect(limiter.tokens()).toBe(10);
    const onStore = shared({});
    await expect(onStore.limiter.take(1, options as object)).rejects.toThrow(error);
  });
});

describe('those who wait on a shared store', () => {
  it.each<{ it: string; free: (limiter: SharedRateLimiter) => unknown }>([
    { it: 'a refund', free: (limiter) => limiter.refund(1, 'a') },
    { it: 'a reset', free: (limiter) => limiter.reset('a') },
  ])('are served at $it, also while the rate is 0', async ({ free }) => {
    const clock = new VirtualClock();
    const limiter = createRateLimiter({
      rate: 0,
      burst: 1,
      name: 'api',
      store: new TestRateStore(),
      clock,
      timers: clock,
      registry: false,
    });
    await limiter.take(1, { key: 'a' });
    const waits = limiter.take(1, { key: 'a' });
    await settle();
    expect(limiter.snapshot().waiting).toBe(1);
    await free(limiter);
    await waits;
    expect(limiter.snapshot().waiting).toBe(0);
    await limiter.close();
  });

  it('are asked for one at a time, however often something is given back meanwhile', async () => {
    const clock = new VirtualClock();
    const store = new TestRateStore();
    const limiter = createRateLimiter({
      rate: 0,
      burst: 10,
      name: 'api',
      store,
      clock,
      timers: clock,
      registry: false,
    });
    await limiter.take(10);
    const all = Promise.all([limiter.take(), limiter.take(), limiter.take()]);
    await settle();
    store.takes = 0;
    for (let i = 0; i < 5; i++) limiter.refund(1);
    await all;
    await settle();
    expect(store.takes).toBe(3); // one for each; what was given back besides is still there
    expect(store.tokens('api', '', clock.nowUs())).toBe(2);
    await limiter.close();
  });

  it('do not wait for what one ahead of them wanted, once that one has left', async () => {
    const clock = new VirtualClock();
    const limiter = createRateLimiter({
      rate: 1,
      burst: 10,
      name: 'api',
      store: new TestRateStore(),
      clock,
      timers: clock,
      registry: false,
    });
    await limiter.take(10);
    const gone = new AbortController();
    const costly = limiter.take(10, { signal: gone.signal }); // in ten seconds
    const cheap = limiter.take(1);
    await clock.advanceMsAsync(1500);
    expect(limiter.snapshot().waiting).toBe(2);
    gone.abort();
    await expect(costly).rejects.toMatchObject({ name: 'AbortError' });
    await cheap;
    expect(limiter.snapshot().waiting).toBe(0);
    await limiter.close();
  });
});

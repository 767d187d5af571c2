import { createRegistry, type ElimitEvent, type Limiter } from '@elimit/core';
import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it, jest } from '@jest/globals';
import {
  CircuitBreaker,
  createGuard,
  createRateLimiter,
  registerLimiter,
} from '../../src/index.js';

/** A limiter of five whose one member throws. */
function throwing(member: keyof Limiter): Limiter {
  const boom = (): never => {
    throw new Error('boom');
  };
  const limiter = {
    admits: (inflight: number) => inflight <= 5,
    started() {},
    refused() {},
    record() {},
    maxConcurrency: 5,
  };
  if (member !== 'maxConcurrency') return { ...limiter, [member]: boom };
  let looks = 0;
  return Object.defineProperty({ ...limiter }, member, {
    get: () => (looks++ === 0 ? 5 : boom()), // the first look is the check at construction
  });
}

describe('a limiter of somebody else’s', () => {
  it.each<{ member: keyof Limiter; admitted: number }>([
    { member: 'admits', admitted: 7 }, // it cannot say: it limits nothing
    { member: 'started', admitted: 5 },
    { member: 'refused', admitted: 5 },
    { member: 'record', admitted: 5 },
    { member: 'maxConcurrency', admitted: 5 },
  ])('that throws in $member fails no call, and is warned of once', ({ member, admitted }) => {
    const clock = new VirtualClock();
    const events: ElimitEvent[] = [];
    const guard = createGuard({
      limit: throwing(member),
      clock,
      registry: false,
      onEvent: (event) => events.push(event),
    });
    const entries = Array.from({ length: 7 }, () => guard.tryAcquire());
    expect(guard.inflight).toBe(admitted);
    guard.observeLoop({ turnUs: 100, idled: true });
    for (const entry of entries) if (entry.admitted) entry.release('success');
    expect(guard.inflight).toBe(0);
    guard.snapshot();
    for (let i = 0; i < 4; i++) {
      clock.advanceMs(1000);
      guard.snapshot();
    }
    expect(events.filter(({ type }) => type === 'warning')).toEqual([
      {
        type: 'warning',
        name: 'guard',
        code: 'WARN_LIMITER_THROWS',
        message: `the limiter threw in ${member} (boom); where it cannot answer, it limits nothing`,
      },
    ]);
  });

  it('is shielded too when it comes by its registered name, and stays while its instance does', () => {
    const forget = registerLimiter('throws-in-record', () => throwing('record'));
    try {
      const guard = createGuard({ limit: 'throws-in-record', registry: false });
      const entry = guard.tryAcquire();
      if (entry.admitted) entry.release('success');
      const own = throwing('started');
      guard.configure({ limit: own });
      const held = guard.tryAcquire();
      guard.configure({ limit: own });
      if (held.admitted) held.release('success');
      expect(guard.snapshot()).toMatchObject({ inflight: 0, limiter: 'custom', maxConcurrency: 5 });
    } finally {
      forget();
    }
  });

  it('keeps its last good limit while it says NaN', () => {
    const limiter = { ...throwing('refused'), maxConcurrency: 7 };
    const guard = createGuard({ limit: limiter, registry: false });
    expect(guard.maxConcurrency).toBe(7);
    limiter.maxConcurrency = Number.NaN;
    expect(guard.maxConcurrency).toBe(7);
  });
});

describe('what untyped code hands to a call', () => {
  const asked = (options: unknown): string => {
    const clock = new VirtualClock();
    clock.advanceMs(1000);
    const guard = createGuard({ limit: 5, clock, registry: false });
    const entry = guard.tryAcquire(options as object);
    if (!entry.admitted) return entry.reason;
    clock.advanceMs(10);
    entry.release('success');
    return `admitted, ${guard.snapshot().latency.meanUs} us`;
  };

  it.each<{ it: string; options: unknown }>([
    { it: 'null', options: null },
    { it: 'a number', options: 5 },
    { it: 'a timeout of text', options: { timeoutMs: 'abc' } },
    { it: 'a timeout of null', options: { timeoutMs: null } },
    { it: 'a BigInt timeout', options: { timeoutMs: 10n } },
    { it: 'a symbol as timeout', options: { timeoutMs: Symbol('x') } },
    { it: 'an unknown priority', options: { priority: '__proto__' } },
    { it: 'an arrival of text', options: { arrivedUs: 'x' } },
    { it: 'a BigInt arrival', options: { arrivedUs: 1n } },
    { it: 'an arrival of null', options: { arrivedUs: null } },
    { it: 'an arrival at minus infinity', options: { arrivedUs: Number.NEGATIVE_INFINITY } },
  ])('is taken as absent: $it', ({ options }) => {
    expect(asked(options)).toBe('admitted, 10000 us');
  });

  it.each(['fail', undefined, null, 5, '__proto__'])('an outcome of %p is ignored', (outcome) => {
    const guard = createGuard({ limit: 5, registry: false });
    const entry = guard.tryAcquire();
    if (entry.admitted) entry.release(outcome as 'success');
    const { inflight, outcomes } = guard.snapshot();
    expect({ inflight, ...outcomes }).toEqual({
      inflight: 0,
      success: 0,
      failure: 0,
      ignored: 1,
      abandoned: 0,
    });
  });

  it('excludes nothing for a BigInt', () => {
    const guard = createGuard({ limit: 5, registry: false });
    const entry = guard.tryAcquire();
    if (entry.admitted) entry.release('success', 5n as unknown as number);
    expect(guard.snapshot().outcomes.success).toBe(1);
  });

  it.each([Number.NaN, Infinity, -5, undefined])('a turn of %p us is no turn', (turnUs) => {
    const guard = createGuard({ limit: 5, registry: false });
    guard.observeLoop({ turnUs: turnUs as number, idled: false });
    expect(guard.snapshot().loopDelayMs).toBe(0);
  });

  it('a signal that is none is named', async () => {
    const guard = createGuard({ limit: 5, registry: false });
    await expect(guard.execute(() => 1, { signal: {} as AbortSignal })).rejects.toThrow(
      'execute.signal.addEventListener must be a function, got undefined',
    );
    expect(guard.inflight).toBe(0);
  });
});

describe('an async listener that rejects', () => {
  it('ends no process: of a guard, a breaker, a rate limiter', () => {
    const registry = createRegistry();
    // a promise whose rejection nobody would handle ends the process
    const thens: { mock: { calls: unknown[][] } }[] = [];
    const rejects = (() => {
      const promise = new Promise<void>(() => {});
      thens.push(jest.spyOn(promise, 'then'));
      return promise;
    }) as () => void;
    const guard = createGuard({ limit: 1, onEvent: rejects, registry });
    guard.tryAcquire();
    guard.tryAcquire();
    const breaker = new CircuitBreaker({ onEvent: rejects, registry });
    breaker.on('open', rejects);
    breaker.forceOpen();
    const limiter = createRateLimiter({ rate: 1, burst: 1, onEvent: rejects, registry });
    limiter.tryTake(1);
    limiter.tryTake(1);
    expect(thens.map(({ mock }) => typeof mock.calls[0]?.[1])).toEqual(Array(4).fill('function'));
  });
});

describe('an error that cannot even be looked at', () => {
  const blind = (): object => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    return proxy;
  };
  // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- that is what it is about
  const fails = () => Promise.reject(blind());

  it.each([{ options: undefined }, { options: { timeoutMs: 1000 } }])(
    'gives its slot back, with options $options',
    async ({ options }) => {
      const clock = new VirtualClock();
      const guard = createGuard({ limit: 1, clock, timers: clock, registry: false });
      await expect(guard.execute(fails, options)).rejects.toBeDefined();
      expect(guard.inflight).toBe(0);
      expect(guard.snapshot().outcomes.failure).toBe(1);
    },
  );

  it.each([{ options: undefined }, { options: { timeoutMs: 1000 } }])(
    'is a failure for a breaker that asks its user, with options $options',
    async ({ options }) => {
      const clock = new VirtualClock();
      const isFailure = (): boolean => true;
      const breaker = new CircuitBreaker({ isFailure, clock, timers: clock, registry: false });
      await expect(breaker.execute(fails, options)).rejects.toBeDefined();
      expect(breaker.snapshot().outcomes.failure).toBe(1);
    },
  );
});

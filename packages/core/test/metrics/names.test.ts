import {
  CircuitBreaker,
  createGuard,
  createRegistry,
  METRICS,
  type Snapshot,
  uniquelyNamed,
} from '@elimit/core';
import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

function samplesOf(name: string, snapshot: Snapshot) {
  return METRICS.find((metric) => metric.name === name)?.samples(snapshot, snapshot.name);
}

describe('metric names', () => {
  it('has each name once, in the collectors’ common spelling', () => {
    const names = METRICS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { name, kind } of METRICS) {
      expect(name).toMatch(/^elimit_(guard|rate_limiter|breaker|endpoint)_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(kind === 'counter');
    }
  });

  it('reads a guard: in seconds, by reason, and nothing for what is not known', () => {
    const clock = new VirtualClock();
    const guard = createGuard({ limit: 1, name: 'GET /a', clock, registry: false });
    const first = guard.tryAcquire();
    guard.tryAcquire();
    clock.advanceMs(250);
    const snapshot = guard.snapshot();
    expect(samplesOf('elimit_guard_inflight', snapshot)).toEqual([
      { value: 1, labels: { name: 'GET /a' } },
    ]);
    expect(samplesOf('elimit_guard_oldest_inflight_seconds', snapshot)).toEqual([
      { value: 0.25, labels: { name: 'GET /a' } },
    ]);
    expect(samplesOf('elimit_guard_rejected_total', snapshot)).toContainEqual({
      value: 1,
      labels: { name: 'GET /a', reason: 'concurrency' },
    });
    expect(samplesOf('elimit_guard_max_qps', snapshot)).toEqual([]);
    expect(samplesOf('elimit_endpoint_calls_total', snapshot)).toEqual([]);
    if (first.admitted) first.release('success');
  });

  it('says nothing of an unlimited guard’s limit: Infinity is no reading', () => {
    const guard = createGuard({ limit: 'unlimited', registry: false });
    expect(samplesOf('elimit_guard_max_concurrency', guard.snapshot())).toEqual([]);
  });

  it('nor of how long a breaker stays open that was opened by hand', () => {
    const breaker = new CircuitBreaker({ registry: false });
    breaker.forceOpen();
    const readings = METRICS.flatMap((metric) => metric.samples(breaker.snapshot(), 'b'));
    expect(readings.filter(({ value }) => !Number.isFinite(value))).toEqual([]);
    expect(samplesOf('elimit_breaker_isolation_left_seconds', breaker.snapshot())).toEqual([]);
  });

  it('tells two sources of one name apart', () => {
    const registry = createRegistry();
    const guards = [
      createGuard({ limit: 1, name: 'app', registry }),
      createGuard({ limit: 2, name: 'app', registry }),
      createGuard({ limit: 3, name: 'other', registry }),
    ];
    const named = uniquelyNamed(guards.map((guard) => guard.snapshot()));
    expect(named.map(({ name }) => name)).toEqual(['app', 'app#2', 'other']);
  });

  it.each([
    { own: ['app', 'app', 'app#2'], shown: ['app', 'app#2', 'app#2#2'] },
    { own: ['app#2', 'app', 'app', 'app'], shown: ['app#2', 'app', 'app#3', 'app#4'] },
    { own: ['app#2', 'app', 'app', 'app#2'], shown: ['app#2', 'app', 'app#3', 'app#2#2'] },
  ])('gives no name twice, also where $own look made up', ({ own, shown }) => {
    const guards = own.map((name) => createGuard({ limit: 1, name, registry: false }));
    const named = uniquelyNamed(guards.map((guard) => guard.snapshot()));
    expect(named.map(({ name }) => name)).toEqual(shown);
  });
});

import { CircuitBreaker, createGuard, createRegistry } from '@elimit/core';
import { collectMetrics } from '@elimit/prometheus';
import { VirtualClock } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import { AggregatorRegistry, Registry } from 'prom-client';

it('workers of a cluster add up their calls, not their times, shares and states', async () => {
  const clock = new VirtualClock();
  const keep: object[] = [];
  const worker = async (ageMs: number): Promise<object[]> => {
    const registry = createRegistry();
    const register = new Registry();
    collectMetrics({ register, registry });
    const guard = createGuard({ limit: 5, name: 'api', clock, registry });
    keep.push(guard, new CircuitBreaker({ name: 'db', registry }));
    guard.tryAcquire();
    clock.advanceMs(ageMs);
    return register.getMetricsAsJSON();
  };
  const all = [await worker(200), await worker(300)];
  const text = await AggregatorRegistry.aggregate(all).metrics();
  expect(text).toContain('elimit_guard_inflight{name="api"} 2');
  expect(text).toContain('elimit_guard_max_concurrency{name="api"} 10');
  expect(text).toContain('elimit_guard_oldest_inflight_seconds{name="api"} 0.3');
  expect(text).toContain('elimit_breaker_state{name="db",state="closed"} 1');
  expect(text).toContain('elimit_breaker_ramp_ratio{name="db"} 1');
  expect(keep).toHaveLength(4);
});

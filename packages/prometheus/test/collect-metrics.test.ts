import { createGuard, createRegistry } from '@elimit/core';
import { collectMetrics } from '@elimit/prometheus';
import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';

function setUp() {
  const registry = createRegistry();
  const register = new Registry();
  collectMetrics({ register, registry });
  return { registry, register, clock: new VirtualClock() };
}

describe('collectMetrics', () => {
  it('shows a guard as it stands at each scrape', async () => {
    const { registry, register, clock } = setUp();
    const guard = createGuard({ limit: 2, name: 'GET /a', clock, registry });
    const entry = guard.tryAcquire();
    expect(await register.metrics()).toContain('elimit_guard_inflight{name="GET /a"} 1');
    if (entry.admitted) entry.release('success');
    const text = await register.metrics();
    expect(text).toContain('elimit_guard_inflight{name="GET /a"} 0');
    expect(text).toContain('elimit_guard_outcomes_total{name="GET /a",outcome="success"} 1');
    expect(text).toContain('# TYPE elimit_guard_outcomes_total counter');
  });

  it('may be called twice for one register', async () => {
    const { registry, register } = setUp();
    const guard = createGuard({ limit: 2, name: 'once', registry });
    collectMetrics({ register, registry });
    const text = await register.metrics();
    expect(text.match(/elimit_guard_inflight\{name="once"\}/g)).toHaveLength(1);
    expect(guard.inflight).toBe(0);
  });

  it('keeps the text valid whatever a name holds', async () => {
    const { registry, register } = setUp();
    const guard = createGuard({ limit: 2, name: 'a"b\n<img>', registry });
    expect(await register.metrics()).toContain('elimit_guard_inflight{name="a\\"b\\n<img>"} 0');
    expect(guard.inflight).toBe(0);
  });

  it('forgets a guard that was removed', async () => {
    const { registry, register } = setUp();
    const guard = createGuard({ limit: 2, name: 'gone', registry });
    expect(await register.metrics()).toContain('name="gone"');
    registry.remove(guard);
    expect(await register.metrics()).not.toContain('name="gone"');
  });
});

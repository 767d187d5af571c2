import { createGuard, createRegistry } from '@elimit/core';
import { collectMetrics } from '@elimit/prometheus';
import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';

it('a source that throws fails no scrape, and takes nothing from the others', async () => {
  const registry = createRegistry();
  const odd = {
    snapshot(): never {
      throw new Error('boom');
    },
  };
  registry.add(odd);
  const guard = createGuard({ limit: 2, name: 'mine', registry });
  const register = new Registry();
  collectMetrics({ register, registry });
  expect(await register.metrics()).toContain('elimit_guard_inflight{name="mine"} 0');
  expect([guard.inflight, odd.snapshot]).toEqual([0, odd.snapshot]);
});

it.each<{ it: string; options: unknown; error: string }>([
  {
    it: 'prom-client’s register as the registry',
    options: { registry: new Registry() },
    error: 'collectMetrics.registry.sources must be a function, got undefined',
  },
  {
    it: 'elimit’s registry as the register',
    options: { register: createRegistry() },
    error: 'collectMetrics.register.getSingleMetric must be a function, got undefined',
  },
  {
    it: 'an unknown option',
    options: { registers: [] },
    error: 'collectMetrics.registers is not an option; known: register, registry',
  },
])('$it is refused at once, not at the first scrape', ({ options, error }) => {
  expect(() => collectMetrics(options as never)).toThrow(new TypeError(error));
});

import { createRegistry } from '@elimit/core';
import { collectMetrics } from '@elimit/prometheus';
import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';

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

import { createRegistry } from '@elimit/core';
import { observeMetrics } from '@elimit/opentelemetry';
import { expect, it } from '@jest/globals';

it.each<{ it: string; options: unknown; error: string }>([
  {
    it: 'a registry that is none',
    options: { registry: {} },
    error: 'observeMetrics.registry.sources must be a function, got undefined',
  },
  {
    it: 'a registry as the meter',
    options: { meter: createRegistry() },
    error: 'observeMetrics.meter.createObservableCounter must be a function, got undefined',
  },
  {
    it: 'an unknown option',
    options: { meters: [] },
    error: 'observeMetrics.meters is not an option; known: meter, registry',
  },
])('$it is refused at once, not when the SDK collects', ({ options, error }) => {
  expect(() => observeMetrics(options as never)).toThrow(new TypeError(error));
});

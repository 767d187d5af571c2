import { createGuard, createRegistry } from '@elimit/core';
import { observeMetrics } from '@elimit/opentelemetry';
import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';

/** The real SDK, collecting only when told. */
function setUp() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  const provider = new MeterProvider({ readers: [reader] });
  const registry = createRegistry();
  const stop = observeMetrics({ meter: provider.getMeter('test'), registry });
  const collect = async (name: string) => {
    exporter.reset();
    await provider.forceFlush();
    const scopes = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    return scopes
      .flatMap(({ metrics }) => metrics)
      .find(({ descriptor }) => descriptor.name === name);
  };
  return { registry, collect, stop, provider };
}

describe('observeMetrics', () => {
  it('observes a guard through the real SDK', async () => {
    const { registry, collect, provider } = setUp();
    const guard = createGuard({ limit: 1, name: 'GET /a', clock: new VirtualClock(), registry });
    guard.tryAcquire();
    guard.tryAcquire();
    const inflight = await collect('elimit.guard.inflight');
    expect(inflight?.descriptor.unit).toBe('{call}');
    expect(inflight?.dataPoints).toMatchObject([
      { value: 1, attributes: { 'elimit.name': 'GET /a' } },
    ]);
    const rejected = await collect('elimit.guard.rejected');
    expect(
      rejected?.dataPoints.find(({ attributes }) => attributes['elimit.reason'] === 'concurrency'),
    ).toMatchObject({ value: 1 });
    await provider.shutdown();
  });

  it('stops when told', async () => {
    const { registry, collect, stop, provider } = setUp();
    const guard = createGuard({ limit: 1, name: 'a', registry });
    expect(await collect('elimit.guard.inflight')).toBeDefined();
    stop();
    guard.tryAcquire();
    // the SDK repeats its last reading
    const after = await collect('elimit.guard.inflight');
    expect(after?.dataPoints).toMatchObject([{ value: 0 }]);
    expect(guard.inflight).toBe(1);
    await provider.shutdown();
  });
});

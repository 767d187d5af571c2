import {
  type Registry as ElimitRegistry,
  having,
  knownKeys,
  METRICS,
  processRegistry,
  readSources,
  type SourceReading,
} from '@elimit/core';
import type { Counter, Gauge, Registry } from 'prom-client';
import * as client from 'prom-client';

/** What is collected, and into which register. */
export interface CollectOptions {
  /** Where the metrics are registered. @default prom-client's global register */
  readonly register?: Registry | undefined;
  /** Whose members are read. @default the process's registry */
  readonly registry?: ElimitRegistry | undefined;
}

const KNOWN = { register: true, registry: true };

/**
 * Registers every metric of elimit with prom-client. They are read when Prometheus scrapes, and cost
 * nothing in between. Calling it again for the same register does nothing.
 *
 * @throws TypeError for an unknown option, or a register or registry that is none
 */
export function collectMetrics(options: CollectOptions = {}): void {
  knownKeys('collectMetrics', options, KNOWN);
  const register = having('collectMetrics.register', options.register ?? client.register, [
    'getSingleMetric',
    'registerMetric',
  ]);
  const source = having('collectMetrics.registry', options.registry ?? processRegistry(), [
    'sources',
  ]);
  for (const metric of METRICS) {
    if (register.getSingleMetric(metric.name) !== undefined) continue;
    const Instrument = metric.kind === 'counter' ? client.Counter : client.Gauge;
    const instrument: Gauge | Counter = new Instrument({
      name: metric.name,
      help: metric.help,
      labelNames: [...metric.labelNames],
      // of a cluster's workers: calls, tokens and keys add up; times, ratios and states do not
      aggregator: metric.unit.startsWith('{') ? 'sum' : 'max',
      registers: [],
      collect() {
        // what has gone since the last scrape must not stay; totals are read, not counted here
        this.reset();
        for (const { name, snapshot } of readAll(source)) {
          for (const { value, labels } of metric.samples(snapshot, name)) this.inc(labels, value);
        }
      },
    });
    register.registerMetric(instrument);
  }
}

const readings = new WeakMap<ElimitRegistry, SourceReading[]>();

/** All snapshots, taken once per scrape: its metrics are collected in one turn, and agree with each other. */
function readAll(source: ElimitRegistry): SourceReading[] {
  let all = readings.get(source);
  if (all === undefined) {
    all = readSources(source);
    readings.set(source, all);
    queueMicrotask(() => readings.delete(source));
  }
  return all;
}

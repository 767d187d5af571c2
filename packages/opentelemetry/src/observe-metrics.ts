import {
  having,
  knownKeys,
  METRICS,
  type MetricDefinition,
  processRegistry,
  type Registry,
  readSources,
} from '@elimit/core';
import { type Meter, metrics, type Observable } from '@opentelemetry/api';

/** What is observed, and with which meter. */
export interface ObserveOptions {
  /** Where the instruments are made. @default the global meter provider's meter `elimit` */
  readonly meter?: Meter | undefined;
  /** Whose members are read. @default the process's registry */
  readonly registry?: Registry | undefined;
}

const KNOWN = { meter: true, registry: true };

/**
 * Makes an observable instrument for every metric of elimit. They are read when the SDK collects, all
 * from one set of snapshots.
 *
 * @returns a function that stops observing
 * @throws TypeError for an unknown option, or a meter or registry that is none
 */
export function observeMetrics(options: ObserveOptions = {}): () => void {
  knownKeys('observeMetrics', options, KNOWN);
  const meter = having('observeMetrics.meter', options.meter ?? metrics.getMeter('elimit'), [
    'createObservableCounter',
    'createObservableGauge',
    'addBatchObservableCallback',
    'removeBatchObservableCallback',
  ]);
  const registry = having('observeMetrics.registry', options.registry ?? processRegistry(), [
    'sources',
  ]);
  const instruments = METRICS.map((metric) => ({
    metric,
    instrument: instrumentFor(meter, metric),
  }));
  const observables: Observable[] = instruments.map(({ instrument }) => instrument);
  const observe: Parameters<Meter['addBatchObservableCallback']>[0] = (result) => {
    const readings = readSources(registry);
    for (const { metric, instrument } of instruments) {
      for (const { name, snapshot } of readings) {
        for (const { value, labels } of metric.samples(snapshot, name)) {
          result.observe(instrument, value, attributesOf(labels));
        }
      }
    }
  };
  meter.addBatchObservableCallback(observe, observables);
  return () => meter.removeBatchObservableCallback(observe, observables);
}

function instrumentFor(meter: Meter, { name, kind, unit, help }: MetricDefinition): Observable {
  const options = { description: help, unit };
  return kind === 'counter'
    ? meter.createObservableCounter(semanticName(name), options)
    : meter.createObservableGauge(semanticName(name), options);
}

/**
 * OpenTelemetry's spelling: dots between namespaces, no unit and no `_total` in the name.
 * `elimit_rate_limiter_granted_total` is `elimit.rate_limiter.granted`.
 */
function semanticName(name: string): string {
  return name
    .replace(/_(total|seconds)$/, '')
    .replace(/^elimit_(guard|rate_limiter|breaker|endpoint)_/, 'elimit.$1.');
}

/** Attributes carry their namespace, so that they mean the same beside those of others. */
function attributesOf(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(labels).map(([label, value]) => [`elimit.${label}`, value]),
  );
}

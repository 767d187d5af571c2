import type { LatencySnapshot, Snapshot } from './snapshot.js';

/** One reading: what it says, and of whom. */
export interface MetricSample {
  readonly value: number;
  readonly labels: Readonly<Record<string, string>>;
}

/** A number that a collector reads. `counter`s only ever grow; units are base units and stand in the name. */
export interface MetricDefinition {
  /** In Prometheus' spelling: `elimit_guard_inflight`, counters ending in `_total`. */
  readonly name: string;
  readonly kind: 'gauge' | 'counter';
  /** `s` for seconds, `1` for ratios and states, else what is counted in braces, as OpenTelemetry has it. */
  readonly unit: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** The readings of one snapshot; none for a snapshot of another type or an estimate that is not known yet. */
  samples(snapshot: Snapshot, name: string): MetricSample[];
}

type OfType<Type extends Snapshot['type']> = Extract<Snapshot, { type: Type }>;
type Readings = number | undefined | Readonly<Record<string, number>>;

/** How one type of snapshot is read: a number, or a number for each value of a second label. */
function metricsOf<Type extends Snapshot['type']>(type: Type) {
  return function metric(
    kind: MetricDefinition['kind'],
    name: string,
    unit: string,
    help: string,
    read: (snapshot: OfType<Type>) => Readings,
    secondLabel?: string,
  ): MetricDefinition {
    return {
      name,
      kind,
      unit,
      help,
      labelNames: secondLabel === undefined ? ['name'] : ['name', secondLabel],
      samples(snapshot, sourceName) {
        if (snapshot.type !== type) return [];
        const readings = read(snapshot as OfType<Type>);
        if (readings === undefined) return [];
        if (typeof readings === 'number') {
          return [{ value: readings, labels: { name: sourceName } }];
        }
        return Object.entries(readings).map(([value, reading]) => ({
          value: reading,
          labels: { name: sourceName, [secondLabel ?? 'kind']: value },
        }));
      },
    };
  };
}

const known = (value: number): number | undefined =>
  value >= 0 && Number.isFinite(value) ? value : undefined;
const seconds = (us: number): number => us / 1e6;

function quantiles(latency: LatencySnapshot): Readonly<Record<string, number>> {
  return {
    '0.5': seconds(latency.p50Us),
    '0.9': seconds(latency.p90Us),
    '0.99': seconds(latency.p99Us),
    '0.999': seconds(latency.p999Us),
  };
}

/** One reading for each state, 1 for the one it is in: what Prometheus calls a state set. */
function stateSet(state: string, states: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(states.map((each) => [each, each === state ? 1 : 0]));
}

const BREAKER_STATES = ['closed', 'open', 'halfOpen'];
const RATE_MODES = ['memory', 'store', 'local', 'open', 'closed'];

const guard = metricsOf('guard');
const rateLimiter = metricsOf('rateLimiter');
const breaker = metricsOf('breaker');
const endpoint = metricsOf('endpoint');

/** Every metric there is: pages and collectors share the names, and what they mean. */
export const METRICS: readonly MetricDefinition[] = [
  guard(
    'gauge',
    'elimit_guard_max_concurrency',
    '{call}',
    'The most calls in flight right now; absent for no limit.',
    (s) => known(s.maxConcurrency),
  ),
  guard(
    'gauge',
    'elimit_guard_inflight',
    '{call}',
    'Calls admitted and not yet released.',
    (s) => s.inflight,
  ),
  guard('counter', 'elimit_guard_admitted_total', '{call}', 'Calls admitted.', (s) => s.admitted),
  guard(
    'counter',
    'elimit_guard_rejected_total',
    '{call}',
    'Calls refused, by reason.',
    (s) => s.rejected,
    'reason',
  ),
  guard(
    'counter',
    'elimit_guard_would_reject_total',
    '{call}',
    'Refusals that a dry run let through.',
    (s) => s.wouldReject,
  ),
  guard(
    'counter',
    'elimit_guard_outcomes_total',
    '{call}',
    'Ended calls, by outcome.',
    (s) => ({ ...s.outcomes }),
    'outcome',
  ),
  guard(
    'gauge',
    'elimit_guard_latency_seconds',
    's',
    'Latency of finished calls over the last minute, by quantile.',
    (s) => quantiles(s.latency),
    'quantile',
  ),
  guard(
    'gauge',
    'elimit_guard_qps',
    '{call}/s',
    'Finished calls per second, over the last seconds.',
    (s) => s.qps,
  ),
  guard(
    'gauge',
    'elimit_guard_oldest_inflight_seconds',
    's',
    'Age of the oldest call in flight.',
    (s) => s.oldestInflightMs / 1000,
  ),
  guard(
    'gauge',
    'elimit_guard_loop_delay_seconds',
    's',
    'Mean time in which the event loop did not look.',
    (s) => s.loopDelayMs / 1000,
  ),
  guard(
    'gauge',
    'elimit_guard_min_latency_seconds',
    's',
    'Estimated latency without queueing; absent while unknown.',
    (s) => known(seconds(s.estimates?.minLatencyUs ?? -1)),
  ),
  guard(
    'gauge',
    'elimit_guard_max_qps',
    '{call}/s',
    'Estimated peak rate; absent while unknown.',
    (s) => known(s.estimates?.maxQps ?? -1),
  ),
  rateLimiter('gauge', 'elimit_rate_limiter_rate', '{token}/s', 'Tokens per second.', (s) =>
    known(s.rate),
  ),
  rateLimiter('gauge', 'elimit_rate_limiter_burst', '{token}', 'Most tokens saved.', (s) =>
    known(s.burst),
  ),
  rateLimiter(
    'gauge',
    'elimit_rate_limiter_tokens',
    '{token}',
    'Tokens that could be taken now; absent for a limiter with keys.',
    (s) => known(s.tokens),
  ),
  rateLimiter('gauge', 'elimit_rate_limiter_keys', '{key}', 'Keys held in memory.', (s) => s.keys),
  rateLimiter(
    'gauge',
    'elimit_rate_limiter_waiting',
    '{call}',
    'Calls that wait for tokens.',
    (s) => s.waiting,
  ),
  rateLimiter(
    'counter',
    'elimit_rate_limiter_granted_total',
    '{call}',
    'Calls granted.',
    (s) => s.granted,
  ),
  rateLimiter(
    'counter',
    'elimit_rate_limiter_rejected_total',
    '{call}',
    'Calls refused.',
    (s) => s.rejected,
  ),
  rateLimiter(
    'counter',
    'elimit_rate_limiter_would_reject_total',
    '{call}',
    'Refusals that a dry run let through.',
    (s) => s.wouldReject,
  ),
  rateLimiter(
    'gauge',
    'elimit_rate_limiter_mode',
    '1',
    'Where the count lives: 1 for the mode in force.',
    (s) => stateSet(s.mode, RATE_MODES),
    'mode',
  ),
  breaker(
    'gauge',
    'elimit_breaker_state',
    '1',
    '1 for the state it is in.',
    (s) => stateSet(s.state, BREAKER_STATES),
    'state',
  ),
  breaker(
    'gauge',
    'elimit_breaker_ramp_ratio',
    '1',
    'Share of traffic let through, 0 to 1.',
    (s) => s.rampRatio,
  ),
  breaker(
    'gauge',
    'elimit_breaker_isolation_left_seconds',
    's',
    'Time left of the isolation; absent while it has no end.',
    (s) => known(s.isolationLeftMs / 1000),
  ),
  breaker(
    'gauge',
    'elimit_breaker_error_cost_ratio',
    '1',
    'Error cost over what is tolerated; 1 opens.',
    (s) => known(s.errorCostRatio),
  ),
  breaker('counter', 'elimit_breaker_opened_total', '{time}', 'Times it opened.', (s) => s.opened),
  breaker(
    'counter',
    'elimit_breaker_rejected_total',
    '{call}',
    'Calls not let through.',
    (s) => s.rejected,
  ),
  breaker(
    'counter',
    'elimit_breaker_outcomes_total',
    '{call}',
    'Ended calls, by outcome.',
    (s) => ({ ...s.outcomes }),
    'outcome',
  ),
  endpoint(
    'gauge',
    'elimit_endpoint_state',
    '1',
    '1 for the state it is in.',
    (s) => stateSet(s.state, BREAKER_STATES),
    'state',
  ),
  endpoint(
    'gauge',
    'elimit_endpoint_ramp_ratio',
    '1',
    'Share of traffic let through, 0 to 1.',
    (s) => s.rampRatio,
  ),
  endpoint(
    'gauge',
    'elimit_endpoint_isolation_left_seconds',
    's',
    'Time left of the isolation; absent while it has no end.',
    (s) => known(s.isolationLeftMs / 1000),
  ),
  endpoint('gauge', 'elimit_endpoint_inflight', '{call}', 'Tries in flight.', (s) => s.inflight),
  endpoint(
    'gauge',
    'elimit_endpoint_recent_errors',
    '{call}',
    'Failed tries since the last recovery.',
    (s) => s.recentErrors,
  ),
  endpoint(
    'gauge',
    'elimit_endpoint_mean_latency_seconds',
    's',
    'Mean latency of its tries.',
    (s) => seconds(s.meanLatencyUs),
  ),
  endpoint(
    'counter',
    'elimit_endpoint_isolations_total',
    '{time}',
    'Isolations, of every cause.',
    (s) => s.nBreak,
  ),
  endpoint('counter', 'elimit_endpoint_calls_total', '{call}', 'Tries.', (s) => s.calls),
  endpoint(
    'counter',
    'elimit_endpoint_failures_total',
    '{call}',
    'Failed tries.',
    (s) => s.failures,
  ),
  endpoint(
    'counter',
    'elimit_endpoint_refusals_total',
    '{call}',
    'Tries answered with a refusal marked ELIMIT.',
    (s) => s.refusals,
  ),
];

/**
 * Each snapshot with a name that no other of its type has: the second `app` is `app#2`. Two sources may
 * share a name, two series may not share their labels.
 */
export function uniquelyNamed(
  snapshots: readonly Snapshot[],
): { name: string; snapshot: Snapshot }[] {
  /** How often a name was asked for; one that was made up here is taken, too. */
  const asked = new Map<string, number>();
  return snapshots.map((snapshot) => {
    const keyOf = (of: string): string => `${snapshot.type} ${of}`;
    const own = keyOf(snapshot.name);
    let count = (asked.get(own) ?? 0) + 1;
    let name = count === 1 ? snapshot.name : `${snapshot.name}#${count}`;
    while (asked.has(keyOf(name))) name = `${snapshot.name}#${++count}`;
    asked.set(keyOf(name), 1);
    asked.set(own, count);
    return { name, snapshot };
  });
}

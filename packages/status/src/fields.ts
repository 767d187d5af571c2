import type {
  BreakerSnapshot,
  EndpointSnapshot,
  GuardSnapshot,
  OutcomeCounts,
  RateLimiterSnapshot,
  Snapshot,
} from '@elimit/core';
import { count, duration, percent, rate } from './format.js';

/** One figure of a snapshot, as text. The key is the same on the page and in live updates. */
export interface Field {
  readonly key: string;
  readonly label: string;
  readonly text: string;
  /** True if the text is a state, and is drawn as one. */
  readonly isState?: boolean;
}

export function fieldsOf(snapshot: Snapshot): readonly Field[] {
  switch (snapshot.type) {
    case 'guard':
      return guardFields(snapshot);
    case 'rateLimiter':
      return rateLimiterFields(snapshot);
    case 'breaker':
      return breakerFields(snapshot);
    case 'endpoint':
      return endpointFields(snapshot);
  }
}

function guardFields(guard: GuardSnapshot): readonly Field[] {
  const { latency, estimates } = guard;
  return [
    field('limiter', 'limiter', guard.dryRun ? `${guard.limiter} (dry run)` : guard.limiter),
    field('limit', 'limit', count(guard.maxConcurrency)),
    field('inflight', 'in flight', count(guard.inflight)),
    field('qps', 'finished per second', rate(guard.qps)),
    field('p50', 'latency p50', duration(latency.p50Us / 1000)),
    field('p90', 'latency p90', duration(latency.p90Us / 1000)),
    field('p99', 'latency p99', duration(latency.p99Us / 1000)),
    field('noload', 'no-load latency (estimate)', duration((estimates?.minLatencyUs ?? -1) / 1000)),
    field('peak', 'peak rate (estimate)', rate(estimates?.maxQps ?? -1)),
    field('oldest', 'oldest call', duration(guard.oldestInflightMs)),
    field('loop', 'loop delay', duration(guard.loopDelayMs)),
    field('admitted', 'admitted', count(guard.admitted)),
    ...Object.entries(guard.rejected).map(([reason, refused]) =>
      field(`refused-${reason}`, `refused: ${reason}`, count(refused)),
    ),
    ...(guard.dryRun ? [field('would', 'would be refused', count(guard.wouldReject))] : []),
    field('outcomes', 'outcomes', outcomes(guard.outcomes)),
  ];
}

function rateLimiterFields(limiter: RateLimiterSnapshot): readonly Field[] {
  return [
    field('rate', 'rate per second', rate(limiter.rate)),
    field('burst', 'burst', count(limiter.burst)),
    field('tokens', 'tokens', limiter.tokens < 0 ? 'per key' : rate(limiter.tokens)),
    field('keys', 'keys', count(limiter.keys)),
    field('granted', 'granted', count(limiter.granted)),
    field('rejected', 'refused', count(limiter.rejected)),
    field('would', 'would be refused', count(limiter.wouldReject)),
    field('waiting', 'waiting', count(limiter.waiting)),
    field('mode', 'counted in', limiter.mode),
  ];
}

function breakerFields(breaker: BreakerSnapshot): readonly Field[] {
  return [
    { ...field('state', 'state', breaker.state), isState: true },
    field('ramp', 'let through', percent(breaker.rampRatio)),
    field('left', 'isolation left', duration(breaker.isolationLeftMs)),
    field('cost', 'error cost of what is tolerated', percent(breaker.errorCostRatio)),
    field('opened', 'opened', count(breaker.opened)),
    field('rejected', 'refused', count(breaker.rejected)),
    field('latency', 'mean latency', duration(breaker.meanLatencyUs / 1000)),
    field('outcomes', 'outcomes', outcomes(breaker.outcomes)),
  ];
}

function endpointFields(endpoint: EndpointSnapshot): readonly Field[] {
  return [
    { ...field('state', 'state', endpoint.state), isState: true },
    field('reason', 'reason', endpoint.reason === '' ? '–' : endpoint.reason),
    field('nBreak', 'nBreak', count(endpoint.nBreak)),
    field('recentErrors', 'RecentErr', count(endpoint.recentErrors)),
    field('left', 'isolation left', duration(endpoint.isolationLeftMs)),
    field('ramp', 'let through', percent(endpoint.rampRatio)),
    field('inflight', 'in flight', count(endpoint.inflight)),
    field('calls', 'calls', count(endpoint.calls)),
    field('failures', 'failures', count(endpoint.failures)),
    field('refusals', 'refusals', count(endpoint.refusals)),
    field('latency', 'mean latency', duration(endpoint.meanLatencyUs / 1000)),
    field('weight', 'weight', count(endpoint.weight)),
  ];
}

function field(key: string, label: string, text: string): Field {
  return { key, label, text };
}

function outcomes(counts: OutcomeCounts): string {
  return Object.entries<number>({ ...counts })
    .filter(([, times]) => times > 0)
    .map(([outcome, times]) => `${outcome} ${count(times)}`)
    .join(', ');
}

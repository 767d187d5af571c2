import type { BreakerState } from '../breaker/breaker.js';
import type { RejectionReason } from '../errors.js';
import type { LimiterEstimates } from '../limiter/limiter.js';

/** Latencies of finished calls, in microseconds; 0 while nothing was measured. */
export interface LatencySnapshot {
  readonly count: number;
  readonly meanUs: number;
  readonly p50Us: number;
  readonly p90Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly maxUs: number;
}

/** How ended calls ended, counted since construction. */
export interface OutcomeCounts {
  readonly success: number;
  readonly failure: number;
  readonly ignored: number;
  readonly abandoned: number;
}

/** Refusals since construction, by reason. */
export type RejectionCounts = Readonly<Record<RejectionReason, number>>;

/** A guard, as it stands. Counters only ever grow, so that collectors can take differences. */
export interface GuardSnapshot {
  readonly type: 'guard';
  readonly name: string;
  /** The law: `constant`, `unlimited`, `auto`, `timeout`, `gradient`, or a registered name. */
  readonly limiter: string;
  readonly maxConcurrency: number;
  readonly inflight: number;
  readonly admitted: number;
  /** Admitted, then taken back: not served after all; counted in `rejected` too. Offered = admitted - revoked + all rejected. */
  readonly revoked: number;
  readonly rejected: RejectionCounts;
  /** Refusals that a dry run let through; not part of `rejected`. */
  readonly wouldReject: number;
  readonly dryRun: boolean;
  readonly outcomes: OutcomeCounts;
  /** Over roughly the last minute. */
  readonly latency: LatencySnapshot;
  /** Finished calls per second, over the last seconds. */
  readonly qps: number;
  /** Age of the oldest call in flight, in milliseconds; 0 when idle. */
  readonly oldestInflightMs: number;
  /** Mean time in which the loop did not look, as told through `observeLoop`, in milliseconds. */
  readonly loopDelayMs: number;
  readonly estimates: LimiterEstimates | null;
}

/** A rate limiter, as it stands. */
export interface RateLimiterSnapshot {
  readonly type: 'rateLimiter';
  readonly name: string;
  /** Tokens per second. */
  readonly rate: number;
  readonly burst: number;
  /** Tokens that could be taken now; for a keyed limiter, -1. */
  readonly tokens: number;
  /** Keys held in memory; 1 for a limiter without keys. */
  readonly keys: number;
  readonly granted: number;
  readonly rejected: number;
  readonly wouldReject: number;
  readonly waiting: number;
  /** Where the count lives right now: `memory`, `store`, `local`, `open`, `closed`. */
  readonly mode: string;
}

export type { BreakerState };

/** A circuit breaker, as it stands. */
export interface BreakerSnapshot {
  readonly type: 'breaker';
  readonly name: string;
  readonly state: BreakerState;
  /** Share of traffic let through while ramping up after half-open, 0 to 1; 1 otherwise. */
  readonly rampRatio: number;
  /** Time left of the isolation, in milliseconds; 0 unless open. */
  readonly isolationLeftMs: number;
  /** Length of the present or last isolation, in milliseconds. */
  readonly isolationMs: number;
  /** Times it opened. */
  readonly opened: number;
  readonly outcomes: OutcomeCounts;
  readonly rejected: number;
  readonly meanLatencyUs: number;
  /** Accumulated error cost ÷ what is tolerated, of the fuller window. 1 or more opens. */
  readonly errorCostRatio: number;
}

/** An outbound endpoint, as it stands. */
export interface EndpointSnapshot {
  readonly type: 'endpoint';
  /** Its documented key: origin, TLS identity, health path, connection group. */
  readonly name: string;
  readonly origin: string;
  readonly connectionGroup: string;
  readonly weight: number;
  readonly state: BreakerState;
  /** What isolated it last: `errorCost`, `relapse`, `trial`, `refused`, `unreachable`, `connectTimeout`, or empty. */
  readonly reason: string;
  /** Isolations since the endpoint began, of every cause. */
  readonly nBreak: number;
  /** Failed tries since the last recovery; refusals marked ELIMIT are left out. */
  readonly recentErrors: number;
  readonly isolationLeftMs: number;
  readonly rampRatio: number;
  readonly inflight: number;
  readonly calls: number;
  readonly failures: number;
  /** Refusals marked ELIMIT that it answered with. */
  readonly refusals: number;
  readonly meanLatencyUs: number;
}

/** What the registry hands to pages and collectors. */
export type Snapshot = GuardSnapshot | RateLimiterSnapshot | BreakerSnapshot | EndpointSnapshot;

export type { FlagSnapshot } from '../options.js';

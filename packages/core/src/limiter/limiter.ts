import type { Outcome } from '../outcome.js';

/**
 * Decides how many calls may be in flight. Public: an own one can be registered by name or passed as `limit`.
 *
 * An engine holds no clock and no timer: it is told the time, in whole microseconds of a monotonic
 * clock. `admits` asks and changes nothing; `started`, `refused` and `record` teach. All members are
 * required, and none may throw or allocate on the path of a call.
 */
export interface Limiter {
  /** The most calls in flight right now; `Infinity` for no limit. */
  readonly maxConcurrency: number;
  /**
   * May one more call run?
   *
   * @param inflight - calls in flight with this one included, at least 1; a guard adds a priority class's reserve
   * @param remainingUs - time left until the call's own deadline; `Infinity` if it carries none
   */
  admits(inflight: number, nowUs: number, remainingUs: number): boolean;
  /** A call was admitted and is now in flight; `inflight` counts it. */
  started(nowUs: number, inflight: number): void;
  /** A call was refused by `admits`. Refusals for another reason (a deadline passed, a full queue) are not told. */
  refused(nowUs: number): void;
  /**
   * An admitted call ended.
   *
   * @param latencyUs - from its arrival, at least 0
   * @param inflightAtStart - what `started` was told
   */
  record(outcome: Outcome, latencyUs: number, nowUs: number, inflightAtStart: number): void;
}

/** What an engine believes, for pages and metrics. Optional; read through {@link estimatesOf}. */
export interface LimiterEstimates {
  /** The latency without queueing, in microseconds; -1 while unknown. */
  readonly minLatencyUs: number;
  /** The most calls per second that the service can finish; -1 while unknown. */
  readonly maxQps: number;
  /** Headroom over `minLatencyUs × maxQps`, as a ratio of it; -1 where the law has none. */
  readonly exploreRatio: number;
}

/** A limiter that tells what it believes. */
export interface EstimatingLimiter extends Limiter {
  estimates(): LimiterEstimates;
}

/** The engine's estimates, or `undefined` for an engine that has none. */
export function estimatesOf(limiter: Limiter): LimiterEstimates | undefined {
  return 'estimates' in limiter ? (limiter as EstimatingLimiter).estimates() : undefined;
}

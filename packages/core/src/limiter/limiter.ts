import type { FlagSnapshot } from '../options.js';
import type { Outcome } from '../outcome.js';
import type { Random } from '../random.js';

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

/** A limiter whose options can be read, and some of them changed while it runs. */
export interface ConfigurableLimiter extends Limiter {
  /**
   * Takes new values for the options it names; the others stay.
   *
   * @throws TypeError or RangeError for an unknown option, a bad value, or one that is fixed at construction; then nothing has changed
   */
  configure(options: Readonly<Record<string, unknown>>): void;
  flags(): readonly FlagSnapshot[];
}

/** The limiter as a configurable one, or `undefined` for an engine that has no options. */
export function configurableOf(limiter: Limiter): ConfigurableLimiter | undefined {
  return 'configure' in limiter && 'flags' in limiter
    ? (limiter as ConfigurableLimiter)
    : undefined;
}

/** What an engine has found out about its own settings: they will hurt. */
export interface LimiterWarning {
  /** Stands in `docs/errors.md`. */
  readonly code: string;
  readonly message: string;
}

/** A limiter that may have something to warn of. Asked now and then by its guard, which tells each code once. */
export interface WarningLimiter extends Limiter {
  warning(): LimiterWarning | undefined;
}

/** What the engine warns of right now, or `undefined`. */
export function warningOf(limiter: Limiter): LimiterWarning | undefined {
  return 'warning' in limiter ? (limiter as WarningLimiter).warning() : undefined;
}

/** A limiter with a timeout of its own, from a call's arrival on: its guard takes off it what has passed since. */
export interface DeadlineLimiter extends Limiter {
  readonly timeoutUs: number;
}

/** The limiter as one with a timeout of its own, or `undefined`. */
export function deadlineOf(limiter: Limiter): DeadlineLimiter | undefined {
  return 'timeoutUs' in limiter ? (limiter as DeadlineLimiter) : undefined;
}

/** The engine's own timeout, in microseconds; `Infinity` for an engine without one. */
export function timeoutUsOf(limiter: Limiter): number {
  return deadlineOf(limiter)?.timeoutUs ?? Number.POSITIVE_INFINITY;
}

/** What an engine is built with, beside its options. */
export interface LimiterContext {
  readonly random: Random;
  /** The clock at construction, in whole microseconds. */
  readonly nowUs: number;
  /** Hears of every window that ended, after the state has changed. Strict engines only; for conformance runs. */
  readonly onStep?: ((step: LimiterStep) => void) | undefined;
}

/**
 * What a strict engine did at the end of a window: `updated` its estimates, began to `remeasure`,
 * found that all had `failed`, `discarded` a window with too few samples, or, `drained` at last,
 * forgot the no-load latency and opened a fresh window.
 */
export type LimiterStep = 'updated' | 'remeasure' | 'failed' | 'discarded' | 'drained';

/** A limiter that shows all it holds, for conformance runs. Times in microseconds; 0 where brpc has "unset". */
export interface StatefulLimiter extends Limiter {
  state(): Readonly<Record<string, number>>;
}

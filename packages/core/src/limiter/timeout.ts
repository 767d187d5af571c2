import {
  changeByRules,
  decimal,
  flagsByRules,
  integer,
  live,
  type OptionRules,
  refuseStrictOnly,
  resolveByRules,
} from '../option-rules.js';
import type { FlagSnapshot } from '../options.js';
import type { Outcome } from '../outcome.js';
import type {
  ConfigurableLimiter,
  DeadlineLimiter,
  LimiterWarning,
  WarningLimiter,
} from './limiter.js';
import { TIMEOUT_STRICT_OPTIONS } from './timeout-strict.js';

/** Options of the `timeout` limiter. All are live. */
export interface TimeoutOptions {
  /** The time a call has, in milliseconds; at least 1. A timeout that a call carries can only shorten it. @default 500 */
  readonly timeoutMs?: number | undefined;
  /** The most calls in flight, whatever is predicted; at least 1. @default 100 */
  readonly maxConcurrency?: number | undefined;
  /** Share of the remaining time that a predicted completion may take; 0.1 to 1. @default 0.8 */
  readonly safety?: number | undefined;
  /** Length of a sample window, in milliseconds; at least 1. @default 200 */
  readonly sampleWindowMs?: number | undefined;
  /** Fewer samples than this keep a window open, up to ten times its length; at least 1. @default 10 */
  readonly minSampleCount?: number | undefined;
  /** Estimates that no call has confirmed for so long are dropped, in milliseconds; at least 1. @default 10000 */
  readonly expireMs?: number | undefined;
}

/** Resolved options of `TimeoutLimiter`. */
export type TimeoutSettings = { [K in keyof TimeoutOptions]-?: NonNullable<TimeoutOptions[K]> };

const RULES: OptionRules<TimeoutSettings> = {
  timeoutMs: live(500, integer(1)),
  maxConcurrency: live(100, integer(1)),
  safety: live(0.8, decimal(0.1, 1)),
  sampleWindowMs: live(200, integer(1)),
  minSampleCount: live(10, integer(1)),
  expireMs: live(10_000, integer(1)),
};

/** Checks the options of a {@link TimeoutLimiter}. */
export function resolveTimeoutOptions(options: object): TimeoutSettings {
  refuseStrictOnly('timeout', options, RULES, TIMEOUT_STRICT_OPTIONS);
  return resolveByRules('timeout', options, RULES);
}

const UNKNOWN = -1;
/** How far a full window moves the unloaded latency, down and up: it shows at quiet moments, and is kept through loud ones. */
const FALL = 0.2;
const RISE = 0.005;
/** A window whose mean latency is this much above the unloaded one had a queue. */
const QUEUED = 1.5;
/** How far a window moves the service time towards the gap between its completions. */
const GAIN = 0.3;
/** What a window leaves of the service time: when calls were refused without a queue, and otherwise. */
const RELAX = 0.98;
const FORGET = 0.995;
/** The service time is at most this much of the unloaded latency, which is seen a little too low. */
const MOST_WORK = 2;
/** Share of the answers that may be later than the margin allows, and the step by which it learns. */
const LATE = 0.01;
const STEP = 0.05;
const MAX_MARGIN = 2;

/**
 * Admits a call when its predicted completion fits its remaining time:
 *
 * `(calls ahead × service time + unloaded latency) × margin ≤ remaining time`
 *
 * The service time is the time between completions while there is a queue: what the capacity of the service makes each
 * call ahead cost. Until a queue has been seen it is 0, and only `maxConcurrency` and the unloaded latency decide. The margin
 * is 1 / `safety`, or more (up to 2) where answers have come later than predicted.
 *
 * A lone call is let through unless its deadline has passed, so that there is always a sample to come back by.
 */
export class TimeoutLimiter implements ConfigurableLimiter, DeadlineLimiter, WarningLimiter {
  // set once, or by configure
  #settings: TimeoutSettings;
  #timeoutUs = 0;
  #expireUs = 0;
  // moves with every call
  #startUs = UNKNOWN; // of the window
  #count = 0;
  #latencySumUs = 0;
  #peak = 0;
  #wasRefused = false;
  #margin: number;
  // moves with every window
  #learnedUs = Number.NEGATIVE_INFINITY;
  /** Mean latency of the least loaded of the recent windows; 0 while unknown. */
  #unloadedUs = 0;
  /** Time between completions while there is a queue; 0 while none has been seen. */
  #serviceUs = 0;
  #limit = 0;

  constructor(settings: TimeoutSettings) {
    this.#settings = settings;
    this.#margin = 1 / settings.safety;
    this.#apply(settings);
  }

  /** For a call with all of the configured timeout left. */
  get maxConcurrency(): number {
    return this.#limit;
  }

  get timeoutUs(): number {
    return this.#timeoutUs;
  }

  admits(inflight: number, nowUs: number, remainingUs: number): boolean {
    if (remainingUs <= 0) return false;
    if (inflight <= 1) return true;
    if (this.#isStale(nowUs)) return inflight <= this.#settings.maxConcurrency;
    if (inflight > this.#limit) return false;
    return (
      remainingUs >= this.#timeoutUs || this.#predictUs(inflight) * this.#margin <= remainingUs
    );
  }

  started(nowUs: number, inflight: number): void {
    this.#forgetIfStale(nowUs);
    if (this.#startUs === UNKNOWN) this.#startUs = nowUs;
    if (inflight > this.#peak) this.#peak = inflight;
  }

  refused(nowUs: number): void {
    this.#forgetIfStale(nowUs);
    this.#wasRefused = true;
  }

  record(outcome: Outcome, latencyUs: number, nowUs: number, inflightAtStart: number): void {
    // a failure or a hang-up that came before any answer could says nothing about how long answers take
    const isSample =
      outcome === 'success' ||
      (outcome !== 'ignored' && this.#unloadedUs > 0 && latencyUs >= this.#unloadedUs);
    if (!isSample) return;
    if (this.#startUs === UNKNOWN) this.#startUs = nowUs;
    this.#count += 1;
    this.#latencySumUs += latencyUs;
    if (this.#unloadedUs > 0) this.#learnMargin(latencyUs / this.#predictUs(inflightAtStart));

    const { sampleWindowMs, minSampleCount } = this.#settings;
    const ageUs = nowUs - this.#startUs;
    const windowUs = sampleWindowMs * 1000;
    if (ageUs < windowUs || (this.#count < minSampleCount && ageUs < 10 * windowUs)) return;
    this.#learn(ageUs, nowUs);
  }

  warning(): LimiterWarning | undefined {
    const { timeoutMs } = this.#settings;
    if (this.#unloadedUs * 2 <= this.#timeoutUs) return undefined;
    const unloadedMs = Math.round(this.#unloadedUs / 1000);
    return {
      code: 'WARN_TIMEOUT_TOO_SHORT',
      message: `timeoutMs ${timeoutMs} is less than twice the unloaded latency (${unloadedMs} ms): calls are refused although the service is healthy`,
    };
  }

  configure(options: Readonly<Record<string, unknown>>): void {
    refuseStrictOnly('timeout', options, RULES, TIMEOUT_STRICT_OPTIONS);
    this.#apply(changeByRules('timeout', this.#settings, options, RULES));
  }

  flags(): readonly FlagSnapshot[] {
    return flagsByRules(this.#settings, RULES);
  }

  #apply(settings: TimeoutSettings): void {
    this.#settings = settings;
    this.#timeoutUs = settings.timeoutMs * 1000;
    this.#expireUs = settings.expireMs * 1000;
    this.#margin = Math.max(this.#margin, 1 / settings.safety);
    this.#moveLimit();
  }

  #predictUs(inflight: number): number {
    return (inflight - 1) * this.#serviceUs + this.#unloadedUs;
  }

  /** Finds the margin that all but a hundredth of the answers keep: a small step down for each that does, a long one up for each that does not. */
  #learnMargin(lateness: number): void {
    const margin =
      this.#margin * (lateness > this.#margin ? 1 + STEP * (1 - LATE) : 1 - STEP * LATE);
    const least = 1 / this.#settings.safety;
    this.#margin = Math.max(least, Math.min(Math.max(least, MAX_MARGIN), margin));
  }

  #learn(ageUs: number, nowUs: number): void {
    const latencyUs = this.#latencySumUs / this.#count;
    this.#learnUnloaded(latencyUs);

    // a call ahead costs no more than all of its own work; a quiet service ends calls less often than it could
    const gapUs = Math.min(ageUs / this.#count, MOST_WORK * this.#unloadedUs);
    const isQueued = latencyUs > QUEUED * this.#unloadedUs;
    if (isQueued && this.#wasFull(gapUs, latencyUs)) {
      this.#serviceUs =
        this.#serviceUs === 0 ? gapUs : this.#serviceUs + (gapUs - this.#serviceUs) * GAIN;
    } else {
      // calls ended faster than it says, or were refused without a queue: there is room; else it is slowly forgotten
      if (gapUs < this.#serviceUs) this.#serviceUs += (gapUs - this.#serviceUs) * GAIN;
      this.#serviceUs *= this.#wasRefused ? RELAX : FORGET;
    }
    this.#learnedUs = nowUs;
    this.#startUs = nowUs;
    this.#count = 0;
    this.#latencySumUs = 0;
    this.#peak = 0;
    this.#wasRefused = false;
    this.#moveLimit();
  }

  #learnUnloaded(latencyUs: number): void {
    if (this.#unloadedUs === 0) this.#unloadedUs = latencyUs;
    else {
      const weight = Math.min(1, this.#count / this.#settings.minSampleCount);
      const gain = (latencyUs < this.#unloadedUs ? FALL : RISE) * weight;
      this.#unloadedUs += (latencyUs - this.#unloadedUs) * gain;
    }
    this.#unloadedUs = Math.max(1, this.#unloadedUs); // 0 means unknown
  }

  /** Only a window that came near the limit, or whose last call would not have fitted, shows what the service is able to do. */
  #wasFull(gapUs: number, latencyUs: number): boolean {
    const timeUs = this.#timeoutUs / this.#margin;
    return (
      this.#wasRefused ||
      this.#peak * 2 > this.#limit ||
      latencyUs > 3 * this.#unloadedUs ||
      this.#peak * gapUs > timeUs
    );
  }

  #moveLimit(): void {
    const { maxConcurrency } = this.#settings;
    const roomUs = this.#timeoutUs / this.#margin - this.#unloadedUs;
    const ahead = this.#serviceUs > 0 ? roomUs / this.#serviceUs : Number.POSITIVE_INFINITY;
    this.#limit = roomUs < 0 ? 1 : Math.min(maxConcurrency, 1 + Math.floor(ahead));
  }

  #isStale(nowUs: number): boolean {
    // a call that takes longer than the expiry is still on its way to confirm them
    return nowUs - this.#learnedUs > Math.max(this.#expireUs, 4 * this.#unloadedUs);
  }

  #forgetIfStale(nowUs: number): void {
    if (this.#unloadedUs === 0 || !this.#isStale(nowUs)) return;
    this.#learnedUs = Number.NEGATIVE_INFINITY;
    this.#unloadedUs = 0;
    this.#serviceUs = 0;
    this.#margin = 1 / this.#settings.safety;
    this.#startUs = nowUs;
    this.#count = 0;
    this.#latencySumUs = 0;
    this.#moveLimit();
  }
}

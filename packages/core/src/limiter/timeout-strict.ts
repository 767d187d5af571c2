import {
  changeByRules,
  decimal,
  fixed,
  flagsByRules,
  integer,
  live,
  MAX_INTEGER,
  type OptionRules,
  resolveByRules,
} from '../option-rules.js';
import type { FlagSnapshot } from '../options.js';
import { integerIn } from '../options.js';
import type { Outcome } from '../outcome.js';
import { SampleWindow, type SampleWindowRules } from '../sampling/sample-window.js';
import type { ConfigurableLimiter, LimiterContext, StatefulLimiter } from './limiter.js';
import { PUNISH_RULES, SAMPLING_RULES, windowRules } from './strict-rules.js';

/** Options of `{ type: 'timeout', strict: true }`: brpc's `timeout_cl_…` settings. All are live unless they say otherwise. */
export interface TimeoutStrictOptions {
  /** Length of a sample window, in milliseconds; at least 1. @default 1000 */
  readonly sampleWindowMs?: number | undefined;
  /** Fewer samples at the end of a window: it is thrown away. At least 1. @default 100 */
  readonly minSampleCount?: number | undefined;
  /** So many samples end a window early. At least 1. @default 200 */
  readonly maxSampleCount?: number | undefined;
  /** At most one sample per interval, in milliseconds, fractions allowed; 0 takes every one. @default 0.1 */
  readonly samplingIntervalMs?: number | undefined;
  /** The average latency before the first window, in milliseconds, to the microsecond. Fixed at construction. @default 0.5 */
  readonly initialAvgLatencyMs?: number | undefined;
  /** Failures count as samples and add their time. @default true */
  readonly errorPunish?: boolean | undefined;
  /** Factor on the time of failures; at least 0. @default 1 */
  readonly failPunishRatio?: number | undefined;
  /** The time a call has unless it carries its own, in milliseconds; at least 0. @default 500 */
  readonly timeoutMs?: number | undefined;
  /** The most calls in flight; 0 still lets a lone call through. @default 100 */
  readonly maxConcurrency?: number | undefined;
  /**
   * What the engine reports as `maxConcurrency`. brpc reports its process-wide setting even where a method has a
   * cap of its own. @default the value of `maxConcurrency`
   */
  readonly reportedMaxConcurrency?: number | undefined;
}

/** Resolved options of `TimeoutStrictLimiter`. */
export type TimeoutStrictSettings = {
  [K in keyof TimeoutStrictOptions]-?: NonNullable<TimeoutStrictOptions[K]>;
};

const FOLLOWS_THE_CAP = -1;

const RULES: OptionRules<TimeoutStrictSettings> = {
  ...SAMPLING_RULES,
  initialAvgLatencyMs: fixed(0.5, decimal(0)),
  ...PUNISH_RULES,
  timeoutMs: live(500, integer(0)),
  maxConcurrency: live(100, integer(0)),
  reportedMaxConcurrency: live(FOLLOWS_THE_CAP, (name, value) =>
    value === FOLLOWS_THE_CAP ? FOLLOWS_THE_CAP : integerIn(name, value, 0, MAX_INTEGER),
  ),
};

/** All option names of the strict grade of `timeout`. */
export const TIMEOUT_STRICT_OPTIONS: object = RULES;

/** Checks the options of the strict grade of `timeout`. */
export function resolveTimeoutStrictOptions(options: object): TimeoutStrictSettings {
  return resolveByRules('timeout', options, RULES);
}

/**
 * brpc's `timeout` limiter, exactly as its code has it: admits while the plain mean latency of the last
 * window is below the call's timeout. A lone call always passes. Reproduces the golden vectors, lock-in included;
 * the default grade predicts and recovers.
 */
export class TimeoutStrictLimiter implements ConfigurableLimiter, StatefulLimiter {
  // set once, or by configure
  readonly #onStep: LimiterContext['onStep'];
  #settings: TimeoutStrictSettings;
  #rules: SampleWindowRules;
  #intervalUs: number;
  #timeoutUs: number;
  // moves with every sample
  readonly #window = new SampleWindow();
  // moves with every window
  #avgLatencyUs: number;

  constructor(settings: TimeoutStrictSettings, context: LimiterContext) {
    this.#onStep = context.onStep;
    this.#settings = settings;
    this.#rules = windowRules(settings);
    this.#intervalUs = settings.samplingIntervalMs * 1000;
    this.#timeoutUs = settings.timeoutMs * 1000;
    this.#avgLatencyUs = Math.round(settings.initialAvgLatencyMs * 1000);
  }

  get maxConcurrency(): number {
    const { reportedMaxConcurrency, maxConcurrency } = this.#settings;
    return reportedMaxConcurrency === FOLLOWS_THE_CAP ? maxConcurrency : reportedMaxConcurrency;
  }

  /** A carried timeout wins over the configured one, also when it is longer: brpc's rule. */
  admits(inflight: number, _nowUs: number, remainingUs: number): boolean {
    if (inflight === 1) return true;
    const timeoutUs = remainingUs === Number.POSITIVE_INFINITY ? this.#timeoutUs : remainingUs;
    return inflight <= this.#settings.maxConcurrency && this.#avgLatencyUs < timeoutUs;
  }

  started(): void {} // this law learns from completions alone
  refused(): void {}

  record(outcome: Outcome, latencyUs: number, nowUs: number): void {
    if (outcome === 'ignored') return;
    const window = this.#window;
    if (!window.pass(nowUs, this.#intervalUs)) return;
    if (!window.isOpen) window.open(nowUs);

    // a call whose client left took at least this long: like a failure, it can only lengthen the mean
    if (outcome === 'success') window.addSuccess(latencyUs);
    else if (this.#settings.errorPunish) window.addFailure(latencyUs);

    const state = window.state(nowUs, this.#rules);
    if (state === 'open') return;
    const hasSuccess = window.successes > 0;
    if (state === 'full') this.#update();
    window.open(nowUs);
    this.#onStep?.(state === 'short' ? 'discarded' : hasSuccess ? 'updated' : 'failed');
  }

  configure(options: Readonly<Record<string, unknown>>): void {
    const settings = changeByRules('timeout', this.#settings, options, RULES);
    this.#settings = settings;
    this.#rules = windowRules(settings);
    this.#intervalUs = settings.samplingIntervalMs * 1000;
    this.#timeoutUs = settings.timeoutMs * 1000;
  }

  flags(): readonly FlagSnapshot[] {
    return flagsByRules(this.#settings, RULES);
  }

  /** All that the engine holds, for conformance runs. */
  state(): Readonly<Record<string, number>> {
    const window = this.#window;
    return {
      avgLatencyUs: this.#avgLatencyUs,
      windowStartUs: window.startUs,
      successes: window.successes,
      failures: window.failures,
      successUs: window.successUs,
      failureUs: window.failureUs,
      lastSampleUs: Math.max(0, window.lastUs),
      maxConcurrency: this.maxConcurrency,
    };
  }

  #update(): void {
    const { successes, successUs, failureUs } = this.#window;
    const meanUs =
      successes > 0
        ? Math.ceil((failureUs * this.#settings.failPunishRatio + successUs) / successes)
        : this.#avgLatencyUs * 2;
    // doubling for ever would end at Infinity; brpc's own integer wraps long after this
    this.#avgLatencyUs = Math.min(meanUs, Number.MAX_SAFE_INTEGER);
  }
}

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
import { knownKeys, oneOf } from '../options.js';
import type { Outcome } from '../outcome.js';
import { SampleWindow, type SampleWindowRules } from '../sampling/sample-window.js';
import type {
  ConfigurableLimiter,
  EstimatingLimiter,
  LimiterContext,
  LimiterEstimates,
  StatefulLimiter,
} from './limiter.js';
import { PUNISH_RULES, SAMPLING_RULES, windowRules } from './strict-rules.js';

/** How the strict grade turns its two estimates into a limit. */
export type AutoLaw = 'code' | 'documented';

/** Options that both laws of the strict `auto` limiter share. All are live unless they say otherwise. */
export interface AutoSharedOptions {
  /** Length of a sample window, in milliseconds; at least 1. @default 1000 */
  readonly sampleWindowMs?: number | undefined;
  /** Fewer samples at the end of a window: it is thrown away. At least 1. @default 100 */
  readonly minSampleCount?: number | undefined;
  /** So many samples end a window early. At least 1. @default 200 */
  readonly maxSampleCount?: number | undefined;
  /** At most one sample per interval, in milliseconds, fractions allowed; 0 takes every one. @default 0.1 */
  readonly samplingIntervalMs?: number | undefined;
  /** The limit at the start. At least 1; fixed at construction. @default 40 */
  readonly initialMaxConcurrency?: number | undefined;
  /** The no-load latency is measured anew after between half and the whole of this, in milliseconds. @default 50000 */
  readonly remeasureIntervalMs?: number | undefined;
  /** Smoothing of the minimum latency, 0 to 1; a tenth of it smooths the peak rate. @default 0.1 */
  readonly emaAlpha?: number | undefined;
  /** Failures count as samples and add their time. @default true */
  readonly errorPunish?: boolean | undefined;
  /** Factor on the time of failures; at least 0. @default 1 */
  readonly failPunishRatio?: number | undefined;
  /** Share of failures that costs nothing; in force only strictly between 0 and 1. @default 0 */
  readonly errorRatePunishThreshold?: number | undefined;
  /** The smallest limit an update may set; at least 1. brpc's number of worker threads. @default 9 */
  readonly minConcurrency?: number | undefined;
  /** The largest limit an update may set. brpc has no such bound. @default 2147483647 */
  readonly maxConcurrency?: number | undefined;
}

/** Options of `{ type: 'auto', strict: true }`: brpc's `auto_cl_…` settings, with brpc's defaults. */
export interface AutoStrictOptions extends AutoSharedOptions {
  /** Upper bound, and start, of the headroom; at least 0. @default 0.3 */
  readonly maxExploreRatio?: number | undefined;
  /** Lower bound of the headroom, and the tolerance in the test for load; at least 0. @default 0.06 */
  readonly minExploreRatio?: number | undefined;
  /** Step of the headroom per window; at least 0. @default 0.02 */
  readonly exploreStep?: number | undefined;
  /** Factor on the limit while re-measuring; at least 0. @default 0.9 */
  readonly remeasureReduceRatio?: number | undefined;
  /** Factor on the latency tolerance, a whole number of at least 0. @default 1 */
  readonly latencyFluctuationCorrection?: number | undefined;
}

/** Options of `{ type: 'auto', strict: true, law: 'documented' }`. */
export interface AutoDocumentedOptions extends AutoSharedOptions {
  /** Headroom of the documented law; at least 0. @default 0.3 */
  readonly alpha?: number | undefined;
}

/** {@link AutoSharedOptions}, resolved. */
export type AutoSharedSettings = {
  [K in keyof AutoSharedOptions]-?: NonNullable<AutoSharedOptions[K]>;
};

/** Resolved options of both laws; what the law in force has no use for stands at its default. */
export interface AutoStrictSettings extends AutoSharedSettings {
  readonly law: AutoLaw;
  readonly maxExploreRatio: number;
  readonly minExploreRatio: number;
  readonly exploreStep: number;
  readonly remeasureReduceRatio: number;
  readonly latencyFluctuationCorrection: number;
  readonly alpha: number;
}

type CodeSettings = Omit<AutoStrictSettings, 'law' | 'alpha'>;
type DocumentedSettings = AutoSharedSettings & { readonly alpha: number };

const SHARED_RULES: OptionRules<AutoSharedSettings> = {
  ...SAMPLING_RULES,
  initialMaxConcurrency: fixed(40, integer(1)),
  remeasureIntervalMs: live(50_000, integer(0)),
  emaAlpha: live(0.1, decimal(0, 1)),
  ...PUNISH_RULES,
  errorRatePunishThreshold: live(0, decimal(-Number.MAX_SAFE_INTEGER)),
  minConcurrency: live(9, integer(1)),
  maxConcurrency: live(MAX_INTEGER, integer(1)),
};

const CODE_RULES: OptionRules<CodeSettings> = {
  ...SHARED_RULES,
  maxExploreRatio: live(0.3, decimal(0)),
  minExploreRatio: live(0.06, decimal(0)),
  exploreStep: live(0.02, decimal(0)),
  remeasureReduceRatio: live(0.9, decimal(0)),
  latencyFluctuationCorrection: live(1, integer(0)),
};

const DOCUMENTED_RULES: OptionRules<DocumentedSettings> = {
  ...SHARED_RULES,
  alpha: live(0.3, decimal(0)),
};

/** All option names of the strict grade of `auto`, those of both laws. */
export const AUTO_STRICT_OPTIONS: object = { ...CODE_RULES, ...DOCUMENTED_RULES, law: 'code' };

const CODE_DEFAULTS: CodeSettings = resolveByRules('auto', {}, CODE_RULES);

/** Checks the options of the strict grade of `auto`, `law` among them. */
export function resolveAutoStrictOptions(options: object): AutoStrictSettings {
  knownKeys('auto', options, AUTO_STRICT_OPTIONS);
  const { law: given, ...rest } = options as { law?: unknown };
  const law =
    given === undefined ? 'code' : oneOf<AutoLaw>('auto.law', given, ['code', 'documented']);
  const settings: AutoStrictSettings =
    law === 'code'
      ? { law, ...resolveByRules('auto', rest, CODE_RULES), alpha: DOCUMENTED_RULES.alpha.default }
      : { law, ...CODE_DEFAULTS, ...resolveByRules('auto', rest, DOCUMENTED_RULES) };
  const { minConcurrency, maxConcurrency, initialMaxConcurrency } = settings;
  integer(minConcurrency)('auto.maxConcurrency', maxConcurrency);
  if ((rest as AutoStrictOptions).initialMaxConcurrency === undefined) {
    return { ...settings, initialMaxConcurrency: Math.min(initialMaxConcurrency, maxConcurrency) };
  }
  integer(1, maxConcurrency)('auto.initialMaxConcurrency', initialMaxConcurrency);
  return settings;
}

const UNKNOWN = -1;

/**
 * brpc's `auto` limiter, exactly as its code has it: estimates the no-load latency and the peak rate, and
 * admits their product plus some headroom. Reproduces the golden vectors to the last digit, weaknesses included;
 * the default grade is what a service wants.
 *
 * With `law: 'documented'` the limit follows brpc's documentation instead, which its code no longer does:
 * `maxQps × ((2 + alpha) × minLatency − latency)`.
 */
export class AutoStrictLimiter implements ConfigurableLimiter, EstimatingLimiter, StatefulLimiter {
  // set once, or by configure
  readonly #random: LimiterContext['random'];
  readonly #onStep: LimiterContext['onStep'];
  #settings: AutoStrictSettings;
  #rules: SampleWindowRules;
  #intervalUs: number;
  // moves with every sample
  readonly #window = new SampleWindow();
  #windowCalls = 0; // successes since the window began, sampled or not: brpc's rate counts these
  // moves with every window
  #limit: number;
  #minLatencyUs = UNKNOWN;
  #maxQps = UNKNOWN;
  #exploreRatio: number;
  #remeasureAtUs: number;
  #drainUntilUs = 0;
  #isDraining = false;

  constructor(settings: AutoStrictSettings, context: LimiterContext) {
    this.#random = context.random;
    this.#onStep = context.onStep;
    this.#settings = settings;
    this.#rules = windowRules(settings);
    this.#intervalUs = settings.samplingIntervalMs * 1000;
    this.#limit = settings.initialMaxConcurrency;
    this.#exploreRatio = settings.maxExploreRatio;
    this.#remeasureAtUs = this.#nextRemeasureUs(context.nowUs);
  }

  get maxConcurrency(): number {
    return this.#limit;
  }

  admits(inflight: number): boolean {
    return inflight <= this.#limit;
  }

  started(): void {} // this law learns from completions alone
  refused(): void {}

  record(outcome: Outcome, latencyUs: number, nowUs: number): void {
    if (outcome === 'ignored') return;
    if (outcome === 'success') this.#windowCalls += 1;
    const window = this.#window;
    if (!window.pass(nowUs, this.#intervalUs)) return;
    if (this.#isDraining && !this.#drained(nowUs)) return;
    if (!window.isOpen) window.open(nowUs);

    // a call whose client left took at least this long: like a failure, it can only lengthen the mean
    if (outcome === 'success') window.addSuccess(latencyUs);
    else if (this.#settings.errorPunish) window.addFailure(latencyUs);

    const state = window.state(nowUs, this.#rules);
    if (state === 'open') return;
    if (state === 'short') {
      this.#reopen(nowUs);
      this.#onStep?.('discarded');
    } else if (window.successes === 0) {
      this.#setLimit(Math.trunc(this.#limit / 2));
      this.#reopen(nowUs);
      this.#onStep?.('failed');
    } else {
      const remeasures = this.#update(nowUs);
      this.#reopen(nowUs);
      this.#onStep?.(remeasures ? 'remeasure' : 'updated');
    }
  }

  estimates(): LimiterEstimates {
    return {
      minLatencyUs: this.#minLatencyUs,
      maxQps: this.#maxQps,
      exploreRatio: this.#settings.law === 'code' ? this.#exploreRatio : UNKNOWN,
    };
  }

  configure(options: Readonly<Record<string, unknown>>): void {
    const current = this.#settings;
    const settings =
      current.law === 'code'
        ? changeByRules('auto', current, options, CODE_RULES)
        : changeByRules('auto', current, options, DOCUMENTED_RULES);
    integer(settings.minConcurrency)('auto.maxConcurrency', settings.maxConcurrency);
    this.#settings = settings;
    this.#rules = windowRules(settings);
    this.#intervalUs = settings.samplingIntervalMs * 1000;
  }

  flags(): readonly FlagSnapshot[] {
    return this.#settings.law === 'code'
      ? flagsByRules(this.#settings, CODE_RULES)
      : flagsByRules(this.#settings, DOCUMENTED_RULES);
  }

  /** All that the engine holds, for conformance runs. */
  state(): Readonly<Record<string, number>> {
    const window = this.#window;
    return {
      maxConcurrency: this.#limit,
      minLatencyUs: this.#minLatencyUs,
      maxQps: this.#maxQps,
      exploreRatio: this.#exploreRatio,
      remeasureAtUs: this.#remeasureAtUs,
      drainUntilUs: this.#drainUntilUs,
      windowStartUs: window.startUs,
      successes: window.successes,
      failures: window.failures,
      successUs: window.successUs,
      failureUs: window.failureUs,
      windowCalls: this.#windowCalls,
      lastSampleUs: Math.max(0, window.lastUs),
    };
  }

  /** While the queue of before drains away, samples say nothing; after that, all is measured anew. */
  #drained(nowUs: number): boolean {
    if (this.#drainUntilUs > nowUs) return false;
    this.#minLatencyUs = UNKNOWN;
    this.#isDraining = false;
    this.#drainUntilUs = 0;
    this.#remeasureAtUs = this.#nextRemeasureUs(nowUs);
    this.#reopen(nowUs);
    this.#onStep?.('drained');
    return true;
  }

  /** True if a re-measurement has begun. The order of operations is brpc's: the vectors pin the last digit. */
  #update(nowUs: number): boolean {
    const { emaAlpha, law } = this.#settings;
    const window = this.#window;
    const latencyUs = Math.ceil((this.#failureCostUs() + window.successUs) / window.successes);
    // a window that ends in the instant it began (sampling interval 0) has no rate: 1 us bounds it
    const elapsedUs = Math.max(1, nowUs - window.startUs);
    const qps = (1_000_000 * this.#windowCalls) / elapsedUs;
    this.#learnMinLatency(latencyUs, emaAlpha);
    this.#learnMaxQps(qps, emaAlpha / 10);

    if (this.#remeasureAtUs <= nowUs) {
      this.#isDraining = true;
      this.#drainUntilUs = nowUs + 2 * latencyUs;
      this.#setLimit(law === 'code' ? this.#reducedLimit() : Math.trunc(this.#limit / 2));
      return true;
    }
    this.#setLimit(
      law === 'code' ? this.#codeLimit(latencyUs, qps) : this.#documentedLimit(latencyUs),
    );
    return false;
  }

  /** The time that failures add: none up to the threshold, and above it in proportion to the rest. */
  #failureCostUs(): number {
    const { failPunishRatio, errorRatePunishThreshold: threshold } = this.#settings;
    const { successes, failures, failureUs } = this.#window;
    const costUs = failureUs * failPunishRatio;
    if (!(threshold > 0 && threshold < 1) || failures === 0) return costUs;
    const errorRate = failures / (successes + failures);
    return errorRate <= threshold ? 0 : (costUs * (errorRate - threshold)) / (1 - threshold);
  }

  /** Falls slowly, and rises only by being forgotten at a re-measurement. */
  #learnMinLatency(latencyUs: number, alpha: number): void {
    if (this.#minLatencyUs <= 0) this.#minLatencyUs = latencyUs;
    else if (latencyUs < this.#minLatencyUs) {
      this.#minLatencyUs = Math.trunc(latencyUs * alpha + this.#minLatencyUs * (1 - alpha));
    }
  }

  /** Rises at once, falls slowly. */
  #learnMaxQps(qps: number, alpha: number): void {
    this.#maxQps = qps >= this.#maxQps ? qps : qps * alpha + this.#maxQps * (1 - alpha);
  }

  #reducedLimit(): number {
    return Math.ceil(
      ((this.#maxQps * this.#minLatencyUs) / 1_000_000) * this.#settings.remeasureReduceRatio,
    );
  }

  #codeLimit(latencyUs: number, qps: number): number {
    const settings = this.#settings;
    const tolerance = 1 + settings.minExploreRatio * settings.latencyFluctuationCorrection;
    const isCalm =
      latencyUs <= this.#minLatencyUs * tolerance ||
      qps <= this.#maxQps / (1 + settings.minExploreRatio);
    this.#exploreRatio = isCalm
      ? Math.min(settings.maxExploreRatio, this.#exploreRatio + settings.exploreStep)
      : Math.max(settings.minExploreRatio, this.#exploreRatio - settings.exploreStep);
    return Math.trunc(((this.#minLatencyUs * this.#maxQps) / 1_000_000) * (1 + this.#exploreRatio));
  }

  #documentedLimit(latencyUs: number): number {
    const headroomUs = (2 + this.#settings.alpha) * this.#minLatencyUs - latencyUs;
    return Math.trunc((this.#maxQps * headroomUs) / 1_000_000);
  }

  #setLimit(limit: number): void {
    const { minConcurrency, maxConcurrency } = this.#settings;
    this.#limit = Math.min(maxConcurrency, Math.max(minConcurrency, limit));
  }

  #reopen(nowUs: number): void {
    this.#window.open(nowUs);
    this.#windowCalls = 0;
  }

  /** Between half an interval and a whole one from now, so that many processes do not dip together. */
  #nextRemeasureUs(nowUs: number): number {
    const halfMs = Math.trunc(this.#settings.remeasureIntervalMs / 2);
    return nowUs + (halfMs + Math.floor(this.#random() * halfMs)) * 1000;
  }
}

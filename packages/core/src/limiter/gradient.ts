import {
  changeByRules,
  decimal,
  fixed,
  flagsByRules,
  integer,
  live,
  type OptionRules,
  resolveByRules,
} from '../option-rules.js';
import type { FlagSnapshot } from '../options.js';
import { knownKeys } from '../options.js';
import type { Outcome } from '../outcome.js';
import { SampleWindow, type SampleWindowRules } from '../sampling/sample-window.js';
import type {
  ConfigurableLimiter,
  EstimatingLimiter,
  LimiterContext,
  LimiterEstimates,
} from './limiter.js';

/** Options of `{ type: 'gradient' }`. All are live unless they say otherwise. */
export interface GradientOptions {
  /** Length of a sample window, in milliseconds; at least 1. @default 1000 */
  readonly sampleWindowMs?: number | undefined;
  /** Fewer successes at the end of a window: it is thrown away. At least 1. @default 10 */
  readonly minSampleCount?: number | undefined;
  /** How many recent windows, this one included, the minimum latency is taken over; 1 to 1000. Fixed at construction. @default 10 */
  readonly windows?: number | undefined;
  /** Calls that may queue, added to the limit in every window; at least 0. @default the square root of the limit */
  readonly queueSize?: number | undefined;
  /** The limit at the start. Fixed at construction. @default 20 */
  readonly initialMaxConcurrency?: number | undefined;
  /** The limit never falls below this; at least 1. @default 1 */
  readonly minConcurrency?: number | undefined;
  /** The limit never rises above this. @default 10000 */
  readonly maxConcurrency?: number | undefined;
}

/** Resolved options of `GradientLimiter`. */
export type GradientSettings = {
  [K in keyof GradientOptions]-?: NonNullable<GradientOptions[K]>;
};

const SQUARE_ROOT = -1;

const RULES: OptionRules<GradientSettings> = {
  sampleWindowMs: live(1000, integer(1)),
  minSampleCount: live(10, integer(1)),
  windows: fixed(10, integer(1, 1000)),
  queueSize: live(SQUARE_ROOT, (name, value) =>
    value === SQUARE_ROOT ? SQUARE_ROOT : decimal(0)(name, value),
  ),
  initialMaxConcurrency: fixed(20, integer(1)),
  minConcurrency: live(1, integer(1)),
  maxConcurrency: live(10_000, integer(1)),
};

/** Checks the options of a {@link GradientLimiter}. */
export function resolveGradientOptions(options: object): GradientSettings {
  knownKeys('gradient', options, RULES);
  const given = resolveByRules('gradient', options, RULES);
  const { minConcurrency, maxConcurrency } = given;
  integer(minConcurrency)('gradient.maxConcurrency', maxConcurrency);
  const { initialMaxConcurrency } = options as GradientOptions;
  if (initialMaxConcurrency === undefined) {
    return { ...given, initialMaxConcurrency: clamp(given.initialMaxConcurrency, given) };
  }
  integer(minConcurrency, maxConcurrency)('gradient.initialMaxConcurrency', initialMaxConcurrency);
  return given;
}

/**
 * Follows the gradient of latency, after Netflix: `limit = minLatency / latency × limit + queueSize` once a window, where
 * `latency` is the least of this window and `minLatency` the least of the recent ones, and the ratio is kept within 0.5 and 1.
 *
 * While latency stays flat the limit climbs to `maxConcurrency`: the law cannot tell a quiet service from one that has
 * room. Failed and abandoned calls are not measured: the fast ones would pass for a fast service.
 */
export class GradientLimiter implements ConfigurableLimiter, EstimatingLimiter {
  // set once, or by configure
  #settings: GradientSettings;
  #rules: SampleWindowRules;
  // moves with every sample
  readonly #window = new SampleWindow();
  #latencyUs = Number.POSITIVE_INFINITY;
  // moves with every window
  readonly #recentUs: Float64Array; // least latencies, a ring
  #next = 0;
  #limit: number;

  constructor(settings: GradientSettings, _context: LimiterContext) {
    this.#settings = settings;
    this.#rules = rulesOf(settings);
    this.#recentUs = new Float64Array(settings.windows).fill(Number.POSITIVE_INFINITY);
    this.#limit = settings.initialMaxConcurrency;
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
    if (outcome !== 'success') return;
    const window = this.#window;
    if (!window.isOpen) window.open(nowUs);
    window.addSuccess(latencyUs);
    this.#latencyUs = Math.min(this.#latencyUs, latencyUs);

    const state = window.state(nowUs, this.#rules);
    if (state === 'open') return;
    if (state === 'full') this.#update();
    window.open(nowUs);
    this.#latencyUs = Number.POSITIVE_INFINITY;
  }

  estimates(): LimiterEstimates {
    const minUs = this.#minLatencyUs();
    return { minLatencyUs: Number.isFinite(minUs) ? minUs : -1, maxQps: -1, exploreRatio: -1 };
  }

  configure(options: Readonly<Record<string, unknown>>): void {
    const settings = changeByRules('gradient', this.#settings, options, RULES);
    integer(settings.minConcurrency)('gradient.maxConcurrency', settings.maxConcurrency);
    this.#settings = settings;
    this.#rules = rulesOf(settings);
    this.#limit = clamp(this.#limit, settings);
  }

  flags(): readonly FlagSnapshot[] {
    return flagsByRules(this.#settings, RULES);
  }

  #update(): void {
    this.#recentUs[this.#next] = this.#latencyUs;
    this.#next = (this.#next + 1) % this.#recentUs.length;
    // a latency of 0 is as fast as can be measured: nothing has risen
    const ratio = this.#latencyUs > 0 ? this.#minLatencyUs() / this.#latencyUs : 1;
    const gradient = Math.max(0.5, Math.min(1, ratio));
    const { queueSize } = this.#settings;
    const room = queueSize === SQUARE_ROOT ? Math.sqrt(this.#limit) : queueSize;
    this.#limit = clamp(Math.trunc(gradient * this.#limit + room), this.#settings);
  }

  #minLatencyUs(): number {
    let minUs = Number.POSITIVE_INFINITY;
    for (const latencyUs of this.#recentUs) minUs = Math.min(minUs, latencyUs);
    return minUs;
  }
}

function clamp(limit: number, { minConcurrency, maxConcurrency }: GradientSettings): number {
  return Math.min(maxConcurrency, Math.max(minConcurrency, limit));
}

function rulesOf(settings: GradientSettings): SampleWindowRules {
  return {
    windowUs: settings.sampleWindowMs * 1000,
    minCount: settings.minSampleCount,
    maxCount: Number.POSITIVE_INFINITY,
  };
}

import { flagsByRules } from '../option-rules.js';
import type { FlagSnapshot } from '../options.js';
import type { Outcome } from '../outcome.js';
import {
  always,
  type Breaker,
  type BreakerChange,
  type BreakerContext,
  type BreakerState,
  NO_TOKEN,
} from './breaker.js';
import {
  changeStrictOptions,
  type Resolved,
  resolveStrictOptions,
  STRICT_BREAKER_RULES,
  type StrictBreakerOptions,
} from './breaker-options.js';

/** Smoothing factors `epsilon^(1/size)`, given instead of computed: `Math.pow` differs in the last digit between engines. */
export interface Smoothing {
  readonly long: number;
  readonly short: number;
}

/** All that moves in a strict breaker, in the words of its golden data. */
export interface StrictBreakerState {
  readonly broken: boolean;
  readonly halfOpen: boolean;
  readonly halfOpenSuccessCount: number;
  readonly isolatedTimes: number;
  readonly isolationDurationMs: number;
  readonly lastResetTimeMs: number;
  readonly long: StrictWindowState;
  readonly short: StrictWindowState;
}

/** One window of a strict breaker. Latency and cost in whole microseconds. */
export interface StrictWindowState {
  readonly initSamples: number;
  readonly initErrors: number;
  readonly emaLatencyUs: number;
  readonly emaErrorCostUs: number;
}

/**
 * brpc's breaker, cut fractions and all. Two windows; until a window has filled it counts errors,
 * afterwards it adds up what they cost. Half-open limits nothing: the first completions decide.
 */
export class StrictBreaker implements Breaker {
  // set once
  readonly #long: StrictWindow;
  readonly #short: StrictWindow;
  readonly #onChange: ((change: BreakerChange) => void) | undefined;
  readonly #mayOpen: () => boolean;
  readonly #endsByTime: boolean;
  readonly trialTimeoutUs = Number.POSITIVE_INFINITY;
  // moves with `configure`
  #options: Resolved<StrictBreakerOptions>;
  #minErrorCostUs = 0;
  // moves with calls and changes of state
  #broken = false;
  #halfOpen = false;
  #halfOpenSuccessCount = 0;
  #isolatedTimes = 0;
  #isolationMs: number;
  #lastResetMs = 0;
  #brokenUs = 0;
  #isForced = false;
  #lastCause = '';

  constructor(
    options: StrictBreakerOptions = {},
    context: BreakerContext & { readonly smooth?: Smoothing | undefined } = {},
  ) {
    this.#options = resolveStrictOptions(options);
    const {
      longWindowSize,
      shortWindowSize,
      longWindowErrorRatio,
      shortWindowErrorRatio,
      epsilon,
    } = this.#options;
    const smooth = context.smooth ?? {
      long: epsilon ** (1 / longWindowSize),
      short: epsilon ** (1 / shortWindowSize),
    };
    this.#long = new StrictWindow(longWindowSize, longWindowErrorRatio, smooth.long);
    this.#short = new StrictWindow(shortWindowSize, shortWindowErrorRatio, smooth.short);
    this.#onChange = context.onChange;
    this.#mayOpen = context.mayOpen ?? always;
    this.#endsByTime = context.isolationEndsBy !== 'caller';
    this.#isolationMs = this.#options.minIsolationMs;
    this.#minErrorCostUs = Math.round(this.#options.minErrorCostMs * 1000);
  }

  get opened(): number {
    return this.#isolatedTimes;
  }

  get isolationUs(): number {
    return this.#isolationMs * 1000;
  }

  get lastCause(): string {
    return this.#lastCause;
  }

  get meanLatencyUs(): number {
    return this.#long.emaLatencyUs;
  }

  get errorCostRatio(): number {
    const { epsilon } = this.#options;
    return Math.max(this.#long.ratio(epsilon), this.#short.ratio(epsilon));
  }

  state(nowUs: number): BreakerState {
    if (this.#broken && this.#endsByTime && !this.#isForced && this.isolationLeftUs(nowUs) === 0) {
      this.#endIsolation(nowUs, 'timer');
    }
    if (this.#broken) return 'open';
    return this.#isHalfOpen ? 'halfOpen' : 'closed';
  }

  tryCall(nowUs: number): number {
    return this.state(nowUs) === 'open' ? NO_TOKEN : 0;
  }

  isTrial(): boolean {
    return false; // brpc's half-open lets all traffic flow
  }

  /** Also says what brpc would answer: true for healthy. */
  record(outcome: Outcome, latencyUs: number, nowUs: number): boolean {
    if (outcome === 'ignored' || outcome === 'abandoned') return true; // ELIMIT; nothing recorded, even while broken
    if (this.#broken) return false;
    const failed = outcome === 'failure';
    if (this.#isHalfOpen) {
      if (failed) {
        this.#markBroken(nowUs, 'trial');
        return false;
      }
      this.#halfOpenSuccessCount += 1;
      // equal, as in the original: a setting changed on the way can be stepped over
      if (this.#halfOpenSuccessCount === this.#options.halfOpenWindowSize) {
        this.#halfOpen = false;
        this.#halfOpenSuccessCount = 0;
        this.#tell('closed', 'trial', 0, nowUs);
      }
    }
    const { maxFailedLatencyMultiple: multiple, epsilon } = this.#options;
    const minUs = this.#minErrorCostUs;
    const healthy =
      this.#long.healthyAfter(failed, latencyUs, multiple, minUs, epsilon) &&
      this.#short.healthyAfter(failed, latencyUs, multiple, minUs, epsilon);
    if (!healthy && this.#mayOpen()) this.#markBroken(nowUs, 'errorCost');
    return healthy;
  }

  recordUntimed(): false {
    return false; // every latency counts
  }

  isolate(nowUs: number, cause: string): void {
    this.#markBroken(nowUs, cause);
  }

  halfOpen(nowUs: number, cause: string): void {
    if (this.#broken && !this.#isForced) this.#endIsolation(nowUs, cause);
  }

  forceOpen(nowUs: number): void {
    if (this.#isForced) return;
    this.#isForced = true;
    if (this.#broken) this.#tell('open', 'forced', Number.POSITIVE_INFINITY, nowUs);
    else this.#markBroken(nowUs, 'forced');
  }

  /** brpc's reset after an isolation: half-open if that is on, else closed. */
  reset(nowUs: number): void {
    this.#isForced = false;
    this.#endIsolation(nowUs, 'reset');
  }

  isolationLeftUs(nowUs: number): number {
    if (!this.#broken) return 0;
    if (this.#isForced) return Number.POSITIVE_INFINITY;
    return Math.max(0, this.#brokenUs + this.#isolationMs * 1000 - nowUs);
  }

  retryAfterUs(nowUs: number): number {
    const leftUs = this.isolationLeftUs(nowUs);
    return leftUs < Number.POSITIVE_INFINITY ? leftUs : this.#options.minIsolationMs * 1000;
  }

  rampRatio(): number {
    return 1; // back all at once
  }

  failingForUs(): number {
    return Number.NaN; // shows the others nothing, nor looks at them
  }

  configure(partial: StrictBreakerOptions): void {
    this.#options = changeStrictOptions(this.#options, partial);
    this.#minErrorCostUs = Math.round(this.#options.minErrorCostMs * 1000);
  }

  flags(): FlagSnapshot[] {
    return flagsByRules(this.#options, STRICT_BREAKER_RULES);
  }

  /** Everything that moves, for conformance runs. */
  dump(): StrictBreakerState {
    return {
      broken: this.#broken,
      halfOpen: this.#halfOpen,
      halfOpenSuccessCount: this.#halfOpenSuccessCount,
      isolatedTimes: this.#isolatedTimes,
      isolationDurationMs: this.#isolationMs,
      lastResetTimeMs: this.#lastResetMs,
      long: this.#long.dump(),
      short: this.#short.dump(),
    };
  }

  get #isHalfOpen(): boolean {
    return this.#halfOpen && this.#options.halfOpenWindowSize > 0;
  }

  #markBroken(nowUs: number, cause: string): void {
    if (this.#broken) return;
    const { minIsolationMs, maxIsolationMs } = this.#options;
    // the last reset is 0 at first, as in the original: a clock near 0 doubles the first isolation
    const isRelapse = Math.trunc(nowUs / 1000) - this.#lastResetMs < maxIsolationMs;
    this.#isolationMs = isRelapse
      ? Math.min(this.#isolationMs * 2, maxIsolationMs)
      : minIsolationMs;
    this.#broken = true;
    this.#brokenUs = nowUs;
    this.#isolatedTimes += 1;
    this.#lastCause = cause;
    this.#tell('open', cause, this.#isForced ? Number.POSITIVE_INFINITY : this.isolationUs, nowUs);
  }

  #endIsolation(nowUs: number, cause: string): void {
    this.#long.reset();
    this.#short.reset();
    this.#lastResetMs = Math.trunc(nowUs / 1000);
    this.#broken = false;
    if (this.#options.halfOpenWindowSize > 0) {
      this.#halfOpen = true;
      this.#halfOpenSuccessCount = 0;
    } // switched off, the phase stays behind as it was and is passed over
    this.#tell(this.#isHalfOpen ? 'halfOpen' : 'closed', cause, 0, nowUs);
  }

  #tell(state: BreakerState, cause: string, isolationUs: number, nowUs: number): void {
    this.#onChange?.({ state, cause, isolationUs, nowUs });
  }
}

/** A window with brpc's 64-bit integers: fractions are cut where the original cuts them. */
class StrictWindow {
  // set once
  readonly #size: number;
  readonly #percent: number;
  readonly #smooth: number;
  readonly #allowedErrors: number;
  // moves with every call
  #samples = 0;
  #errors = 0;
  #errorCostUs = 0;
  emaLatencyUs = 0;

  constructor(size: number, errorRatio: number, smooth: number) {
    this.#size = size;
    this.#percent = Math.round(errorRatio * 100);
    this.#smooth = smooth;
    this.#allowedErrors = Math.trunc((size * this.#percent) / 100); // cut
  }

  healthyAfter(
    failed: boolean,
    latencyUs: number,
    multiple: number,
    minErrorCostUs: number,
    epsilon: number,
  ): boolean {
    let healthy: boolean;
    if (failed) {
      healthy = this.#addCost(latencyUs, multiple, minErrorCostUs, epsilon);
    } else {
      this.#learnLatency(latencyUs);
      healthy = this.#addCost(0, multiple, minErrorCostUs, epsilon);
    }
    if (this.#samples >= this.#size) return healthy;
    this.#samples += 1;
    if (!failed) return true;
    this.#errors += 1;
    return this.#errors <= this.#allowedErrors; // the errors before this one were fewer than allowed
  }

  /** A filled window keeps its average; one that has not filled forgets everything. */
  reset(): void {
    this.#errorCostUs = 0;
    if (this.#samples >= this.#size) return;
    this.#samples = 0;
    this.#errors = 0;
    this.emaLatencyUs = 0;
  }

  ratio(epsilon: number): number {
    if (this.#samples < this.#size)
      return this.#errors === 0 ? 0 : this.#errors / this.#allowedErrors;
    return this.#errorCostUs === 0 ? 0 : this.#errorCostUs / this.#ceilingUs(epsilon);
  }

  dump(): StrictWindowState {
    return {
      initSamples: this.#samples,
      initErrors: this.#errors,
      emaLatencyUs: this.emaLatencyUs,
      emaErrorCostUs: this.#errorCostUs,
    };
  }

  #learnLatency(latencyUs: number): void {
    this.emaLatencyUs =
      this.emaLatencyUs === 0
        ? latencyUs
        : Math.trunc(this.emaLatencyUs * this.#smooth + latencyUs * (1 - this.#smooth)) + 0; // cut; never -0
  }

  #addCost(latencyUs: number, multiple: number, minErrorCostUs: number, epsilon: number): boolean {
    const costUs =
      this.emaLatencyUs === 0 ? latencyUs : Math.min(this.emaLatencyUs * multiple, latencyUs);
    if (costUs !== 0) {
      this.#errorCostUs += costUs;
      return this.#errorCostUs <= this.#ceilingUs(epsilon);
    }
    if (this.#errorCostUs !== 0) {
      this.#errorCostUs =
        this.#errorCostUs > 0 && this.#errorCostUs < minErrorCostUs
          ? 0
          : Math.trunc(this.#errorCostUs * this.#smooth) + 0; // cut; never -0
    }
    return true;
  }

  #ceilingUs(epsilon: number): number {
    // left to right, as the original evaluates it; then cut
    return Math.trunc(this.emaLatencyUs * this.#size * (this.#percent / 100) * (1 + epsilon));
  }
}

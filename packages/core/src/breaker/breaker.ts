import { flagsByRules } from '../option-rules.js';
import type { FlagSnapshot } from '../options.js';
import type { Outcome } from '../outcome.js';
import { type Random, systemRandom } from '../random.js';
import type { BreakerCluster, ClusterNode, Fellows } from './breaker-cluster.js';
import {
  changeErrorCostOptions,
  ERROR_COST_RULES,
  type ErrorCostOptions,
  type Resolved,
  resolveErrorCostOptions,
} from './breaker-options.js';
import { ErrorWindow } from './error-window.js';
import { Isolation, type IsolationRules } from './isolation.js';

/** `closed`: calls pass. `open`: none does. `halfOpen`: a few trial calls do. There is no fourth state. */
export type BreakerState = 'closed' | 'open' | 'halfOpen';

/** What a breaker answers instead of a token when it lets a call not through. */
export const NO_TOKEN = -1;

/** A breaker has changed its state. */
export interface BreakerChange {
  readonly state: BreakerState;
  /** `errorCost`, `relapse`, `trial`, `trialTimeout`, `timer`, `forced`, `reset`, or what `isolate` and `halfOpen` were told. */
  readonly cause: string;
  /** How long the isolation lasts; 0 unless `state` is `open`, `Infinity` when forced. */
  readonly isolationUs: number;
  readonly nowUs: number;
}

/**
 * Decides whether a target may be called at all. One for each target. Holds no clock and no timer:
 * it is told the time, in whole microseconds of a monotonic clock, and moves on when asked.
 */
export interface Breaker extends ClusterNode {
  /** The state, after isolations and trial calls whose time is over have been dealt with. */
  state(nowUs: number): BreakerState;
  /** Asks for one call: a token to hand back with its result, or {@link NO_TOKEN} if it may not run. */
  tryCall(nowUs: number): number;
  /** True if the token's call is one of the few of a half-open phase. */
  isTrial(token: number): boolean;
  /** A call that `tryCall` let through has ended. Results of calls begun before the last change of state are dropped. */
  record(outcome: Outcome, latencyUs: number, nowUs: number, token: number): void;
  /**
   * A good call has ended, and nobody has looked at the clock.
   *
   * @returns false if it was not counted: this one is to be timed, and told to `record`
   */
  recordUntimed(token: number): boolean;
  /** Opens for a reason seen from outside, such as a refused connection. Does nothing while open. */
  isolate(nowUs: number, cause: string): void;
  /** Ends an isolation at once and begins the trial: for breakers whose return somebody else decides. Does nothing unless open by errors. */
  halfOpen(nowUs: number, cause: string): void;
  /** Opens until `reset`. */
  forceOpen(nowUs: number): void;
  /** Closes, with nothing held against the target. */
  reset(nowUs: number): void;
  /** Time left of the isolation: 0 unless open, `Infinity` when forced open. */
  isolationLeftUs(nowUs: number): number;
  /** When asking again makes sense, after a refusal. */
  retryAfterUs(nowUs: number): number;
  /** Share of calls let through while ramping up, 0 to 1; 1 otherwise. */
  rampRatio(nowUs: number): number;
  /** Changes live options; throws on bad ones and then changes nothing. */
  configure(partial: object): void;
  flags(): FlagSnapshot[];
  /** Times it opened, for every cause. */
  readonly opened: number;
  /** Length of the present or last isolation. */
  readonly isolationUs: number;
  /** What opened it last; empty before. */
  readonly lastCause: string;
  /** Average latency of good calls; 0 while none was seen. */
  readonly meanLatencyUs: number;
  /** Accumulated cost ÷ what is tolerated, of the fuller window. */
  readonly errorCostRatio: number;
  /** Deadline of a trial call, from its start; `Infinity` where trial calls have none. */
  readonly trialTimeoutUs: number;
}

/** What an engine is given besides its numbers. */
export interface BreakerContext {
  /** Jitters isolations. */
  readonly random?: Random;
  /** Told after each change of state; may call back in. */
  readonly onChange?: ((change: BreakerChange) => void) | undefined;
  /**
   * Who ends an isolation: `time`, or the `caller` through `halfOpen` (a health check, for example).
   * @default 'time'
   */
  readonly isolationEndsBy?: 'time' | 'caller';
  /**
   * Asked before errors open a closed breaker: a cap on how many targets of a set may be out at once.
   * While the answer is no the cost stands, and the next failure asks again. Other causes do not ask.
   */
  readonly mayOpen?: (() => boolean) | undefined;
  /** The other nodes, asked with each failure (default grade only). Without them every fault is the target's own. */
  readonly cluster?: BreakerCluster | undefined;
}

/** What `mayOpen` answers where there is no cap. */
export function always(): true {
  return true;
}

/** What the fellows answer where there is no cluster. */
function nobody(): number {
  return Number.NaN;
}

/** A token is `epoch × TOKENS`, plus the number of its slot (from 1) for a trial call. */
const TOKENS = 1024;
const FREE = Number.POSITIVE_INFINITY;
/** A ramp begins with, and never falls below, a tenth of the calls. */
const RAMP_FLOOR = 0.1;
/** After an isolation three quarters of what the long window tolerates are spent: a target that fails in part is noticed sooner again. */
const PROBATION = 0.75;
/** With this share of the fellows well a failure costs in full; with fewer, in proportion. */
const ENOUGH_WELL = 0.5;
/** Good calls in a row that end a target's failing in the eyes of its fellows. */
const PROVEN_WELL = 3;
/** Failures in a row that isolate again right after a return. */
const RELAPSE_RUN = 2;
/** A run of failures that the calls since the return would bring by chance this often or more is no relapse. */
const CHANCE = 0.05;
/** Time fades the cost in steps of this share of the half-life (half a percent each): one power less per call. */
const FADE_STEP = 1 / 128;
/** Good calls are timed, so many at first, then one in so many: a second look at the clock costs as much as all the rest. */
const TIMED_AT_FIRST = 256;
const TIMED_EACH = 8;

/**
 * The default grade: brpc's error cost in two windows, counted in average latencies, so that a failure
 * costs something however fast it was and a drifting average changes nothing. The short window counts
 * failures and notices that all calls fail; the long one weighs them by their latency, from
 * `minFailedLatencyMultiple` to `maxFailedLatencyMultiple`, and notices that too many do.
 */
export class ErrorCostBreaker implements Breaker {
  // set once
  readonly #isolation: Isolation;
  readonly #onChange: ((change: BreakerChange) => void) | undefined;
  readonly #mayOpen: () => boolean;
  readonly #fellows: Fellows;
  readonly #endsByTime: boolean;
  readonly #short: ErrorWindow;
  readonly #long: ErrorWindow;
  // moves with `configure`
  #options: Resolved<ErrorCostOptions>;
  #isolationRules!: IsolationRules;
  #halfLifeUs = 0;
  #commonFaultUs = 0;
  #averageWeight = 0;
  // moves with every change of state
  #state: BreakerState = 'closed';
  #token = 0;
  #isForced = false;
  #opened = 0;
  #lastCause = '';
  #isRamping = false;
  #rampFromUs = 0;
  #rampUs = 0;
  #rampCredit = 0;
  #trialDeadlinesUs: number[] = [];
  #trialsInFlight = 0;
  #trialSuccesses = 0;
  // moves with every call
  #calls = 0;
  #fadedUs = Number.NEGATIVE_INFINITY;
  #meanLatencyUs = 0;
  #meanCount = 0;
  #untimedLeft = 0;
  /** Failures since the last good call, and good calls since the last failure. */
  #run = 0;
  #goodRun = 0;
  /** NaN while well. */
  #failingFromUs = Number.NaN;
  /** Failures for each good call, those that ended in an isolation left out: what is usual here. */
  #usualRatio: number;

  constructor(options: ErrorCostOptions = {}, context: BreakerContext = {}) {
    const { random = systemRandom, onChange, isolationEndsBy = 'time' } = context;
    this.#mayOpen = context.mayOpen ?? always;
    this.#fellows = context.cluster?.join(this) ?? nobody;
    this.#options = resolveErrorCostOptions(options);
    this.#isolation = new Isolation(random);
    this.#onChange = onChange;
    this.#endsByTime = isolationEndsBy === 'time';
    const {
      shortWindowSize,
      longWindowSize,
      shortWindowErrorRatio,
      longWindowErrorRatio,
      epsilon,
    } = this.#options;
    this.#short = new ErrorWindow(shortWindowSize, shortWindowErrorRatio, epsilon);
    this.#long = new ErrorWindow(longWindowSize, longWindowErrorRatio, epsilon);
    this.#usualRatio = longWindowErrorRatio;
    this.#apply();
  }

  get opened(): number {
    return this.#opened;
  }

  get isolationUs(): number {
    return this.#isolation.lengthUs;
  }

  get lastCause(): string {
    return this.#lastCause;
  }

  get meanLatencyUs(): number {
    return this.#meanLatencyUs;
  }

  get errorCostRatio(): number {
    return Math.max(this.#short.ratio, this.#long.ratio);
  }

  get trialTimeoutUs(): number {
    return this.#options.trialTimeoutMs * 1000;
  }

  state(nowUs: number): BreakerState {
    if (this.#state === 'halfOpen') this.#endOverdueTrials(nowUs);
    if (this.#state === 'open' && this.#endsByTime && !this.#isForced) {
      if (nowUs >= this.#isolation.endUs) this.#beginTrial(nowUs, 'timer');
    }
    return this.#state;
  }

  tryCall(nowUs: number): number {
    if (this.#state === 'closed') {
      return !this.#isRamping || this.#passesRamp(nowUs) ? this.#token : NO_TOKEN;
    }
    const state = this.state(nowUs);
    if (state === 'halfOpen') return this.#tryTrial(nowUs);
    return state === 'open' ? NO_TOKEN : this.tryCall(nowUs);
  }

  isTrial(token: number): boolean {
    return token % TOKENS !== 0;
  }

  record(outcome: Outcome, latencyUs: number, nowUs: number, token: number): void {
    if (this.#state === 'halfOpen') this.#endOverdueTrials(nowUs);
    const slot = token - this.#token;
    if (slot < 0 || slot >= TOKENS) return; // begun before the last change of state
    if (this.#state === 'closed') this.#recordCall(outcome, latencyUs, nowUs);
    else this.#recordTrial(outcome, latencyUs, nowUs, slot - 1);
  }

  recordUntimed(token: number): boolean {
    if (token !== this.#token || this.#untimedLeft === 0) return false;
    this.#untimedLeft -= 1;
    this.#countGood();
    return true;
  }

  isolate(nowUs: number, cause: string): void {
    if (this.state(nowUs) !== 'open') this.#open(nowUs, cause);
  }

  halfOpen(nowUs: number, cause: string): void {
    if (this.state(nowUs) === 'open' && !this.#isForced) this.#beginTrial(nowUs, cause);
  }

  forceOpen(nowUs: number): void {
    if (this.#isForced) return;
    this.#isForced = true;
    this.#open(nowUs, 'forced');
  }

  reset(nowUs: number): void {
    const wasClosed = this.#state === 'closed';
    this.#isolation.forget();
    this.#meanLatencyUs = 0;
    this.#meanCount = 0;
    this.#usualRatio = this.#options.longWindowErrorRatio;
    this.#close(0);
    if (!wasClosed) this.#tell('closed', 'reset', 0, nowUs);
  }

  isolationLeftUs(nowUs: number): number {
    if (this.state(nowUs) !== 'open') return 0;
    return this.#isForced ? Number.POSITIVE_INFINITY : Math.max(0, this.#isolation.endUs - nowUs);
  }

  retryAfterUs(nowUs: number): number {
    const state = this.state(nowUs);
    // forced open has no end, half-open and a ramp none that is known: the shortest isolation is a fair guess
    if (state !== 'open' || this.#isForced) return this.#isolationRules.minUs;
    return Math.max(0, this.#isolation.endUs - nowUs);
  }

  rampRatio(nowUs: number): number {
    if (!this.#isRamping) return 1;
    return Math.min(1, Math.max(RAMP_FLOOR, (nowUs - this.#rampFromUs) / this.#rampUs));
  }

  failingForUs(nowUs: number): number {
    if (this.#state !== 'closed') return Number.POSITIVE_INFINITY;
    return nowUs - this.#failingFromUs;
  }

  configure(partial: ErrorCostOptions): void {
    this.#options = changeErrorCostOptions(this.#options, partial);
    this.#apply();
  }

  flags(): FlagSnapshot[] {
    return flagsByRules(this.#options, ERROR_COST_RULES);
  }

  #apply(): void {
    const options = this.#options;
    this.#short.resize(options.shortWindowSize, options.shortWindowErrorRatio, options.epsilon);
    this.#long.resize(options.longWindowSize, options.longWindowErrorRatio, options.epsilon);
    this.#isolationRules = {
      minUs: options.minIsolationMs * 1000,
      maxUs: options.maxIsolationMs * 1000,
      relapseUs: options.relapseMs * 1000,
      jitterRatio: options.isolationJitterRatio,
    };
    this.#halfLifeUs = options.costHalfLifeMs * 1000;
    this.#commonFaultUs = options.commonFaultMs * 1000;
    this.#averageWeight = 1 - options.epsilon ** (1 / options.longWindowSize);
  }

  #recordCall(outcome: Outcome, latencyUs: number, nowUs: number): void {
    if (outcome !== 'success' && outcome !== 'failure') return; // a refusal, a cancel: not the target's fault
    const hasFaded = this.#fade(nowUs);
    if (outcome === 'success') {
      this.#learnLatency(latencyUs);
      this.#countGood();
      // where calls are rare each one is timed, so that the cost fades as time goes by
      if (!hasFaded && this.#meanCount >= TIMED_AT_FIRST) this.#untimedLeft = TIMED_EACH - 1;
      return;
    }
    this.#calls += 1;
    this.#recordFailure(latencyUs, nowUs);
  }

  #countGood(): void {
    this.#calls += 1;
    this.#short.success();
    this.#long.success();
    this.#goodRun += 1;
    if (this.#goodRun <= PROVEN_WELL) this.#endRun();
  }

  /** A failure costs in full if enough of the fellows are well, and nothing if none is: then the fault is not this target's. */
  #recordFailure(latencyUs: number, nowUs: number): void {
    const wellRatio = this.#fellows(nowUs, this.#commonFaultUs);
    const weight = wellRatio < ENOUGH_WELL ? wellRatio / ENOUGH_WELL : 1; // NaN: nobody to compare with
    // a target that takes only a few calls at first: less of them, instead of another isolation
    if (!this.#isRamping || !this.#slowsRamp(nowUs)) {
      this.#short.failure(weight);
      this.#countRun(nowUs);
    }
    this.#long.failure(weight * this.#costOf(latencyUs));
    if (weight === 0 || this.#calls < this.#options.minCalls) return;
    const isOver = this.#short.isOver || this.#long.isOver;
    if (!isOver && !(wellRatio >= ENOUGH_WELL && this.#isRelapse(nowUs))) return;
    if (this.#mayOpen()) this.#open(nowUs, isOver ? 'errorCost' : 'relapse');
  }

  #countRun(nowUs: number): void {
    if (this.#run === 0) this.#usualRatio *= (1 - this.#averageWeight) ** this.#goodRun;
    this.#run += 1;
    this.#goodRun = 0;
    if (Number.isNaN(this.#failingFromUs)) this.#failingFromUs = nowUs;
  }

  /** A good call, one of the first after a failure. */
  #endRun(): void {
    this.#usualRatio += this.#averageWeight * this.#run;
    this.#run = 0;
    if (this.#goodRun === PROVEN_WELL) this.#failingFromUs = Number.NaN;
  }

  /**
   * After a return a few failures in a row are enough, if they are more than chance would bring; each `relapseMs` of good
   * time asks for one more.
   */
  #isRelapse(nowUs: number): boolean {
    const { relapseUs } = this.#isolationRules;
    const goodTimes = Math.floor(this.#isolation.goodUs(nowUs) / relapseUs); // 0 / 0 is NaN: no relapse
    const isLong = this.#run >= RELAPSE_RUN + goodTimes;
    return isLong && this.#calls * this.#usualRatio ** this.#run < CHANCE;
  }

  /** In average latencies. Has a floor: an instant failure spoils a call as much as a slow one. */
  #costOf(latencyUs: number): number {
    const { minFailedLatencyMultiple: min, maxFailedLatencyMultiple: max } = this.#options;
    // written so that an unknown average, and NaN, give the floor
    if (!(this.#meanLatencyUs > 0 && latencyUs > min * this.#meanLatencyUs)) return min;
    return Math.min(max, latencyUs / this.#meanLatencyUs);
  }

  /** A plain mean at first, so that one slow first call does not stand for all; then smoothed. */
  #learnLatency(latencyUs: number): void {
    if (!(latencyUs < Number.POSITIVE_INFINITY)) return; // not timed
    this.#meanCount += 1;
    const weight = Math.max(this.#averageWeight, 1 / this.#meanCount);
    this.#meanLatencyUs += weight * (Math.max(0, latencyUs) - this.#meanLatencyUs);
  }

  /** True if so much time has passed since it last did that there was something to fade. */
  #fade(nowUs: number): boolean {
    const steps = (nowUs - this.#fadedUs) / this.#halfLifeUs;
    if (steps < FADE_STEP) return false;
    const factor = 2 ** -steps;
    this.#fadedUs = nowUs;
    this.#calls *= factor;
    this.#short.fade(factor);
    this.#long.fade(factor);
    return true;
  }

  #tryTrial(nowUs: number): number {
    // one more at a time with each success, and never more than are still needed to close
    const { halfOpenWindowSize, trialTimeoutMs } = this.#options;
    const needed = Math.max(1, halfOpenWindowSize - this.#trialSuccesses); // it may have been lowered meanwhile
    if (this.#trialsInFlight >= Math.min(needed, this.#trialSuccesses + 1)) return NO_TOKEN;
    let slot = this.#trialDeadlinesUs.indexOf(FREE);
    if (slot < 0) slot = this.#trialDeadlinesUs.length;
    this.#trialDeadlinesUs[slot] = nowUs + trialTimeoutMs * 1000;
    this.#trialsInFlight += 1;
    return this.#token + 1 + slot;
  }

  #recordTrial(outcome: Outcome, latencyUs: number, nowUs: number, slot: number): void {
    const deadlineUs = this.#trialDeadlinesUs[slot];
    if (deadlineUs === undefined || deadlineUs === FREE) return; // told twice
    this.#trialDeadlinesUs[slot] = FREE;
    this.#trialsInFlight -= 1;
    if (outcome === 'failure') {
      this.#open(nowUs, 'trial');
    } else if (outcome === 'success') {
      this.#learnLatency(latencyUs);
      this.#trialSuccesses += 1;
      if (this.#trialSuccesses >= this.#options.halfOpenWindowSize) this.#return(nowUs, 'trial');
    }
  }

  /** A trial call that never settles has failed at its deadline, whenever that is noticed. */
  #endOverdueTrials(nowUs: number): void {
    if (this.#trialsInFlight === 0) return;
    let deadlineUs = FREE;
    for (const each of this.#trialDeadlinesUs) deadlineUs = Math.min(deadlineUs, each);
    if (nowUs >= deadlineUs) this.#open(deadlineUs, 'trialTimeout');
  }

  #open(nowUs: number, cause: string): void {
    this.#isolation.begin(nowUs, this.#isolationRules);
    this.#enter('open');
    this.#opened += 1;
    this.#lastCause = cause;
    const isolationUs = this.#isForced ? Number.POSITIVE_INFINITY : this.#isolation.lengthUs;
    this.#tell('open', cause, isolationUs, nowUs);
  }

  #beginTrial(nowUs: number, cause: string): void {
    if (this.#options.halfOpenWindowSize === 0) {
      this.#return(nowUs, cause);
      return;
    }
    this.#isolation.onTrial();
    this.#enter('halfOpen');
    this.#trialSuccesses = 0;
    this.#tell('halfOpen', cause, 0, nowUs);
  }

  /** Closes after an isolation: the average stays, the cost starts over, calls come back step by step. */
  #return(nowUs: number, cause: string): void {
    this.#isolation.returned(nowUs);
    this.#close(PROBATION);
    this.#rampUs = Math.min(this.#options.rampMs * 1000, this.#isolation.lengthUs);
    this.#rampFromUs = nowUs;
    this.#isRamping = this.#rampUs > 0;
    this.#rampCredit = 1 - RAMP_FLOOR; // the first call passes
    this.#tell('closed', cause, 0, nowUs);
  }

  #close(spent: number): void {
    this.#enter('closed');
    this.#isForced = false;
    this.#short.restart(0);
    this.#long.restart(spent);
    this.#calls = 0;
    this.#run = 0;
    this.#failingFromUs = Number.NaN;
  }

  #enter(state: BreakerState): void {
    this.#state = state;
    this.#token += TOKENS; // results of earlier calls no longer count
    this.#isRamping = false;
    this.#untimedLeft = 0;
    this.#trialDeadlinesUs.length = 0;
    this.#trialsInFlight = 0;
  }

  #passesRamp(nowUs: number): boolean {
    const ratio = this.rampRatio(nowUs);
    if (ratio === 1) {
      this.#isRamping = false;
      return true;
    }
    this.#rampCredit += ratio;
    if (this.#rampCredit < 1) return false;
    this.#rampCredit -= 1;
    return true;
  }

  /** Halves the share of calls let through; false if it is at its floor already. */
  #slowsRamp(nowUs: number): boolean {
    const ratio = this.rampRatio(nowUs);
    if (ratio === 1) {
      this.#isRamping = false;
      return false;
    }
    this.#rampFromUs = nowUs - Math.max(RAMP_FLOOR, ratio / 2) * this.#rampUs;
    return ratio > RAMP_FLOOR;
  }

  #tell(state: BreakerState, cause: string, isolationUs: number, nowUs: number): void {
    this.#onChange?.({ state, cause, isolationUs, nowUs });
  }
}

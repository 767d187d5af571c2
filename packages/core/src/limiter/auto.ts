import {
  changeByRules,
  decimal,
  fixed,
  flagsByRules,
  integer,
  live,
  type OptionRules,
  refuseStrictOnly,
  resolveByRules,
} from '../option-rules.js';
import type { FlagSnapshot } from '../options.js';
import type { Outcome } from '../outcome.js';
import type { Random } from '../random.js';
import { LoadWindow } from '../sampling/load-window.js';
import { AUTO_STRICT_OPTIONS } from './auto-strict.js';
import type {
  ConfigurableLimiter,
  EstimatingLimiter,
  LimiterContext,
  LimiterEstimates,
} from './limiter.js';

/** Options of `{ type: 'auto' }`. All are live unless they say otherwise. `docs/auto.md` explains the law. */
export interface AutoOptions {
  /** The limit at the start. Fixed at construction. @default 20 */
  readonly initialMaxConcurrency?: number | undefined;
  /** The limit never falls below this; at least 1. @default 1 */
  readonly minConcurrency?: number | undefined;
  /** The limit never rises above this. @default 10000 */
  readonly maxConcurrency?: number | undefined;
  /** Calls that may wait for their turn, beyond those being worked on; at least 0. @default 25 */
  readonly queueSize?: number | undefined;
  /** No more may wait than are worked off in this time, or in two no-load latencies, and four; milliseconds, at least 0. @default 750 */
  readonly queueMs?: number | undefined;
  /** Least time between two re-measurements of the no-load latency under lasting overload, in milliseconds; at least 100. @default 15000 */
  readonly remeasureIntervalMs?: number | undefined;
  /** A re-measurement lowers the limit to this share of what keeps the service just busy; 0.3 to 1. @default 0.8 */
  readonly remeasureReduceRatio?: number | undefined;
  /** A window whose mean is not yet precise ends after this time, in milliseconds; at least 100. @default 1500 */
  readonly sampleWindowMs?: number | undefined;
  /** A window waits for so many calls, as long as they come within five seconds; at least 10. @default 20 */
  readonly minSampleCount?: number | undefined;
  /** A window never takes more calls than this. @default 4000 */
  readonly maxSampleCount?: number | undefined;
}

/** Resolved options of `AutoLimiter`. */
export type AutoSettings = { [K in keyof AutoOptions]-?: NonNullable<AutoOptions[K]> };

const RULES: OptionRules<AutoSettings> = {
  initialMaxConcurrency: fixed(20, integer(1)),
  minConcurrency: live(1, integer(1)),
  maxConcurrency: live(10_000, integer(1)),
  queueSize: live(25, decimal(0)),
  queueMs: live(750, decimal(0)),
  remeasureIntervalMs: live(15_000, integer(100)),
  remeasureReduceRatio: live(0.8, decimal(0.3, 1)),
  sampleWindowMs: live(1500, integer(100)),
  minSampleCount: live(20, integer(10)),
  maxSampleCount: live(4000, integer(50)),
};

/** Checks the options of an {@link AutoLimiter}; brpc's that have no meaning here are refused with a pointer to `strict`. */
export function resolveAutoOptions(options: object): AutoSettings {
  refuseStrictOnly('auto', options, RULES, AUTO_STRICT_OPTIONS);
  const settings = resolveByRules('auto', options, RULES);
  const { minConcurrency, maxConcurrency } = settings;
  integer(minConcurrency)('auto.maxConcurrency', maxConcurrency);
  const { initialMaxConcurrency: initial } = options as AutoOptions;
  if (initial !== undefined) {
    integer(minConcurrency, maxConcurrency)('auto.initialMaxConcurrency', initial);
  }
  const within = Math.max(minConcurrency, Math.min(maxConcurrency, settings.initialMaxConcurrency));
  return { ...settings, initialMaxConcurrency: within };
}

const SECOND = 1e6;
/** Fewer than this share refused are the tips of bursts: the service has room. */
const CALM = 0.05;
/** With more than this share refused it is an overload, whatever else has changed. */
const PRESSED = 0.2;
/** In-flight may grow without cost if latency rises with it by less than this share of pure waiting. */
const FLAT = 0.4;
/** A throughput so many standard errors over what was believed is no chance. Windows are many: of a thousand one is three over. */
const BEYOND_CHANCE = 4;
/** Calls that a first guess at the work is made of. */
const FIRST_GUESS = 5;
/** Calls behind the estimate of the work before it is trusted. */
const TRUSTED = 200;
/** Calls that the averages remember. */
const WORK_MEMORY = 400;
const CAPACITY_MEMORY = 3000;
/** As much of it as is left after a trial has found another capacity. */
const CAPACITY_DOUBT = 300;
/** Re-measurements that find nothing new come so many times less often. */
const MOST_PATIENCE = 4;
/** The first one of all comes after this share of the usual time: it was made with everything in motion. */
const LEAST_PATIENCE = 0.25;
/** A long trial keeps the next one away for no more than so many of the usual times. */
const LONGEST_PAUSE = 5;

/**
 * Keeps as many calls in flight as the service needs to be busy, and a few more:
 *
 *     limit = capacity × work + allowance
 *
 * `capacity` is what the service finishes per microsecond when it is busy, `work` the time a call takes when it waits
 * for nobody; their product is Little's law for a service that is just busy. Neither drifts by itself. A window in which
 * nothing was refused teaches the work, as far as its latencies do not rise with the calls in flight; one in which the
 * limit bound teaches the capacity. What neither explains is looked at twice and then tried: the limit is cut for a
 * moment, and how throughput answers tells slower work from less capacity.
 */
export class AutoLimiter implements ConfigurableLimiter, EstimatingLimiter {
  #settings: AutoSettings;
  readonly #random: Random;

  // what is believed of the service; times in microseconds, rates per microsecond, so that rate × time counts calls
  #workUs = -1;
  #capacity = 0;
  /** Calls behind the capacity, up to what its average remembers. */
  #capacityCalls = 0;
  /** Calls behind the work, as far as they were free of queueing. */
  #trust = 0;
  /** What was sure of the capacity when the estimates were last confirmed, and when that was. */
  #provenCapacity = 0;
  #provenUs = 0;
  /** Share of the calls refused lately. */
  #pressure = 0;
  /** Standard deviation of the latency ÷ its mean. */
  #variation = 0;
  #guessed = 0;

  // the limit
  #limit: number;
  #maxConcurrency: number;
  #inflight = 0;
  /** When the last call ended. */
  #lastUs = 0;
  /** While climbing, every release raises the limit, up to here. */
  #climbTo: number;
  #climbing = true;
  #hasty = true;

  // the window
  readonly #window = new LoadWindow();
  /** The limit was changed: the window begins when that has taken effect, `drainUs` after in-flight has come down. */
  #settling = false;
  #drainUs = 0.02 * SECOND;
  #suspect = false;

  // the trial: a cut of the limit, and the level it is compared with
  #trying = false;
  #triedSinceUs = 0;
  #returnTo = 0;
  #aboveThroughput = 0;
  #aboveInflight = 0;
  #aboveLatencyUs = 0;
  /** True if the level above was measured just now. */
  #aboveIsFresh = false;
  /** True if its throughput can be believed. */
  #aboveIsWhole = true;
  /** What an older level above said, in case the fresh comparison is lost in noise; -1 for nothing. */
  #olderElasticity = -1;
  #remeasureAtUs = 0;
  /** Doubles with every re-measurement that found nothing new. */
  #patience = 1;

  constructor(settings: AutoSettings, { random, nowUs }: LimiterContext) {
    this.#settings = settings;
    this.#random = random;
    this.#limit = this.#maxConcurrency = settings.initialMaxConcurrency;
    this.#climbTo = Math.max(60, 3 * this.#limit);
    this.#remeasureAtUs = nowUs + settings.remeasureIntervalMs * 1000 * (0.5 + random());
    this.#window.open(nowUs);
  }

  get maxConcurrency(): number {
    return this.#maxConcurrency;
  }

  admits(inflight: number): boolean {
    return inflight <= this.#maxConcurrency;
  }

  started(nowUs: number, inflight: number): void {
    if (inflight === 1) this.#skipSilence(nowUs);
    this.#inflight = inflight;
    if (this.#settling) this.#settle(nowUs);
    if (nowUs >= this.#window.startUs) this.#window.admitted++;
  }

  refused(nowUs: number): void {
    if (this.#settling) this.#settle(nowUs);
    const window = this.#window;
    if (nowUs < window.startUs) return;
    window.refuse(nowUs);
    // load has just come to a service that was at ease: a window across both says nothing of either
    if (window.beganAtEase(nowUs) && !this.#trying && !this.#climbing) this.#window.open(nowUs);
  }

  record(outcome: Outcome, latencyUs: number, nowUs: number, inflightAtStart: number): void {
    this.#inflight--;
    if (this.#settling) this.#settle(nowUs);
    this.#lastUs = nowUs;
    if (outcome === 'ignored') return;
    // a failure that comes early took little from the service, and says little about it
    if (outcome === 'failure' && latencyUs < this.#workUs / 2) return;
    // the client left: the call would have taken at least so long
    const heldUs = outcome === 'abandoned' ? Math.max(latencyUs, this.#workUs) : latencyUs;
    this.#sample(Math.max(1, heldUs), nowUs, inflightAtStart);
  }

  estimates(): LimiterEstimates {
    return {
      minLatencyUs: this.#workUs,
      maxQps: this.#capacity > 0 ? this.#capacity * SECOND : -1,
      exploreRatio: -1,
    };
  }

  configure(options: Readonly<Record<string, unknown>>): void {
    refuseStrictOnly('auto', options, RULES, AUTO_STRICT_OPTIONS);
    const settings = changeByRules('auto', this.#settings, options, RULES);
    integer(settings.minConcurrency)('auto.maxConcurrency', settings.maxConcurrency);
    this.#settings = settings;
    this.#setLimit(this.#limit);
  }

  flags(): readonly FlagSnapshot[] {
    return flagsByRules(this.#settings, RULES);
  }

  // ---- on every call: sums only

  #sample(latencyUs: number, nowUs: number, inflightAtStart: number): void {
    if (this.#guessed < FIRST_GUESS) {
      this.#workUs = (this.#workUs * this.#guessed + latencyUs) / ++this.#guessed;
    }
    if (nowUs < this.#window.startUs) return;
    this.#window.add(latencyUs, inflightAtStart);
    if (this.#climbing && this.#limit < this.#climbTo) this.#climb(inflightAtStart, latencyUs);
    if (this.#window.count >= this.#window.lookAtCount && this.#isDone(nowUs)) this.#learn(nowUs);
  }

  #climb(inflightAtStart: number, latencyUs: number): void {
    // a call that found the limit far off says nothing about it, and one that waited speaks against more
    if (inflightAtStart <= this.#limit / 2 || latencyUs >= 1.3 * this.#workUs) return;
    this.#setLimit(this.#limit + (this.#trust < TRUSTED ? 3 : 1));
  }

  /** Nobody was there for a second or more: that is not time in which the service was slow. */
  #skipSilence(nowUs: number): void {
    const window = this.#window;
    const silentUs = nowUs - Math.max(this.#lastUs, window.startUs);
    if (silentUs > SECOND) window.startUs += silentUs;
  }

  #settle(nowUs: number): void {
    if (this.#inflight > this.#limit) this.#window.startUs = nowUs + this.#drainUs;
    else this.#settling = false;
  }

  /** Done when its mean is precise enough, or its time is up: soon while things move, after two turnovers when holding. */
  #isDone(nowUs: number): boolean {
    if (this.#guessed < FIRST_GUESS) return false;
    const { sampleWindowMs, minSampleCount, maxSampleCount } = this.#settings;
    const window = this.#window;
    const lastedUs = nowUs - window.startUs;
    const { count } = window;
    if (count < minSampleCount) return count >= 4 && lastedUs >= 5 * SECOND;
    if (lastedUs < 0.02 * SECOND) {
      window.lookAtCount = count + (count >> 9); // the same below 512; where calls are that dense, a few more cost nothing
      return false;
    }
    if (count >= maxSampleCount) return true;
    window.lookAtCount = Math.min(maxSampleCount, count + (count >> 4));
    window.measure(nowUs);
    const { meanLatencyUs, spreadUs } = window;
    if (lastedUs < Math.min(0.5 * SECOND, 0.7 * (meanLatencyUs + spreadUs))) return false;
    if (lastedUs >= (count < 50 ? 5 * SECOND : sampleWindowMs * 1000)) return true;
    const spread = Math.max(spreadUs / meanLatencyUs, 0.7 * this.#variation);
    if (spread > (this.#trying ? 0.05 : 0.07) * Math.sqrt(count)) return false;
    if (this.#trying) return count >= 100;
    if (this.#climbing && this.#hasty) return true;
    if (this.#inflight > 1.3 * this.#target()) return true;
    if (count >= this.#limit && window.refused > 0 && this.#isOdd()) return true;
    return count >= Math.max(300, 2 * this.#limit) || this.#isHeldBack();
  }

  /** Calls are refused while the service does more than it was thought able to, and hardly anything waits. */
  #isHeldBack(): boolean {
    const { refused, throughput, count } = this.#window;
    const margin = 1 + BEYOND_CHANCE * this.#countingError(count);
    if (refused === 0 || throughput <= this.#capacity * margin) return false;
    return this.#waitsAtLimit() < this.#allowance(throughput) / 4;
  }

  // ---- the law

  #target(): number {
    return this.#capacity * this.#workUs + this.#allowance(this.#capacity);
  }

  /**
   * How many calls may wait. A count, since a queue longer than K is about as rare as load ^ K however many servers
   * there are; bounded in time for slow services. Fewer while calls are refused, since lasting overload needs no room for
   * bursts: 62 % of the count less, 65 % of what time allows, once half are refused. The root covers the scatter of the
   * calls being worked on.
   */
  #allowance(capacity: number): number {
    const { queueSize, queueMs } = this.#settings;
    const relief = Math.min(1, this.#pressure / 0.24, this.#pressure + 0.5);
    const places = queueSize * (1 - 0.62 * relief);
    const waitUs = Math.max(queueMs * 1000, 2 * this.#workUs); // who takes long may wait long
    const inTime = (4 + capacity * waitUs) * (1 - 0.65 * relief);
    return Math.min(places, inTime) + 0.95 * Math.sqrt(capacity * this.#workUs);
  }

  /** The end of a window. */
  #learn(nowUs: number): void {
    const window = this.#window;
    window.measure(nowUs);
    const variation = window.spreadUs / window.meanLatencyUs;
    const noise = Math.max(this.#variation, variation) / Math.sqrt(window.count);
    // soon up and slowly down: among calls that wait the differences of the work itself are hard to see
    const rate = variation > this.#variation ? 0.3 : 0.05;
    this.#variation += rate * (variation - this.#variation);
    this.#drainUs = Math.max(0.005 * SECOND, window.meanLatencyUs + 2.5 * window.spreadUs);
    if (this.#trying) this.#learnFromTrial(nowUs, noise);
    else this.#learnFromLoad(nowUs);
  }

  #learnFromLoad(nowUs: number): void {
    const window = this.#window;
    const { throughput, meanInflight, count } = window;
    const lastedUs = nowUs - window.startUs;
    const bound = window.refused > 0;
    this.#pressure +=
      (1 - Math.exp(-lastedUs / (2 * SECOND))) * (window.refusedShare - this.#pressure);
    const flat = this.#isFlat();
    // a window without refusals in the midst of many was luck, and its calls waited
    if ((!bound || flat) && !this.#climbing && this.#pressure < 2 * CALM) this.#learnWork(nowUs);
    if (!bound) this.#provenCapacity = Math.max(this.#provenCapacity, this.#sureCapacity());

    const odd = this.#isOdd();
    if (odd && !this.#suspect) {
      this.#suspect = true; // look again
      this.#climbing = false;
      this.#window.open(nowUs + this.#drainUs);
      return;
    }
    this.#suspect = false;
    if (odd) {
      // few calls need a deeper cut to tell the answers apart
      const depth = Math.max(0.3, 0.7 - 1.5 / Math.sqrt(count));
      this.#tryLower(nowUs, depth * meanInflight, throughput, true, this.#limit);
    } else if (bound) this.#followBound(nowUs, flat);
    else this.#followFree(nowUs);
  }

  /** A window that what is believed does not explain: it has a queue, and should have none or a shorter one. */
  #isOdd(): boolean {
    const window = this.#window;
    const { throughput, meanInflight, count } = window;
    const allowance = this.#allowance(Math.max(this.#capacity, throughput));
    const queue = this.#meanQueue();
    if (window.refused === 0)
      return queue > 1.5 * allowance && window.queueing + window.queueingError > 0.5;
    // throughput well under what was proven, or far more in flight than what is believed can need
    const isSlow =
      throughput < this.#provenCapacity * (0.85 - 2 * this.#countingError(count)) ||
      this.#isFading();
    const isFull = meanInflight > 1.5 * (throughput * this.#workUs + allowance);
    return queue > allowance / 2 && (isSlow || isFull);
  }

  /**
   * Little is refused, and yet, beyond chance, less is done than was proven. A dependency that grows slower bit by bit looks so: the
   * limit falls behind it, and no single window tells.
   */
  #isFading(): boolean {
    if (this.#pressure >= PRESSED) return false;
    const error = this.#countingError(this.#capacityCalls);
    return this.#capacity < this.#provenCapacity * (1 - 0.6 * error);
  }

  /** Hardly anything is refused, and latency did not rise with the calls in flight. */
  #isFlat(): boolean {
    const { queueing, queueingError, refusedShare } = this.#window;
    if (this.#climbing || this.#pressure >= CALM) return false;
    return refusedShare < CALM && queueing + queueingError < FLAT;
  }

  /** Calls that waited on average, if the work is as believed. */
  #meanQueue(): number {
    return this.#window.throughput * (this.#window.meanLatencyUs - this.#workUs);
  }

  /** Latencies teach the work, as far as they do not rise with the calls in flight. */
  #learnWork(nowUs: number): void {
    const window = this.#window;
    // a window shorter than this has not seen a queue that it built itself
    if (nowUs - window.startUs < 2 * window.meanLatencyUs) return;
    const free = Math.max(0, 1 - Math.max(0, window.queueing) - window.queueingError);
    const calls = window.count * free;
    const before = this.#trust < TRUSTED ? this.#trust : WORK_MEMORY;
    const weight = calls > 0 ? calls / (calls + before) : 0;
    const off = window.meanLatencyUs - window.meanWaitUs() - this.#workUs;
    this.#workUs = Math.max(1, this.#workUs + weight * off);
    this.#trust = Math.min(TRUSTED, this.#trust + calls);
    if (this.#trust < TRUSTED || free <= 0.6) return;
    this.#provenUs = nowUs;
    const { remeasureIntervalMs } = this.#settings;
    this.#remeasureAtUs = Math.max(this.#remeasureAtUs, nowUs + remeasureIntervalMs * 1000);
  }

  /** A slow average; a rise beyond the noise of counting is taken at once. Says whether it was one. */
  #learnCapacity(): boolean {
    const { throughput, count } = this.#window;
    const rise = throughput - this.#capacity;
    const jump = rise > BEYOND_CHANCE * this.#capacity * this.#countingError(count);
    if (jump) this.#capacityCalls = 0;
    this.#capacity += (count / (count + this.#capacityCalls)) * rise;
    this.#capacityCalls = Math.min(CAPACITY_MEMORY, this.#capacityCalls + count);
    return jump;
  }

  /** The capacity, less a standard error. */
  #sureCapacity(): number {
    return this.#capacity * (1 - this.#countingError(Math.max(1, this.#capacityCalls)));
  }

  /** Standard error of a throughput that so many calls stand behind, relative: that of arrivals, or more where service times spread more. */
  #countingError(calls: number): number {
    return Math.max(1, this.#variation) / Math.sqrt(calls);
  }

  /** How many wait when the limit is reached. */
  #waitsAtLimit(): number {
    const window = this.#window;
    return window.throughput * (window.latencyAt(this.#limit) - this.#workUs);
  }

  /** Nothing was refused, which says nothing against the limit; only an absurdly loose one is let down slowly. */
  #followFree(nowUs: number): void {
    const window = this.#window;
    this.#climbing = false;
    if (window.throughput > this.#capacity) this.#learnCapacity();
    const target = this.#target();
    const lastedUs = nowUs - window.startUs;
    const loose = this.#limit > 3 * target;
    const kept = loose ? this.#limit * Math.exp(-lastedUs / (10 * SECOND)) : this.#limit;
    this.#setLimit(Math.max(target, kept));
    this.#window.open(nowUs);
  }

  #followBound(nowUs: number, flat: boolean): void {
    const cold = this.#trust < TRUSTED;
    const allowance = this.#allowance(Math.max(this.#capacity, this.#window.throughput));
    const jump = this.#learnCapacity();
    // in a window whose limit moved, what waited on average
    const waits = this.#climbing ? this.#meanQueue() : this.#waitsAtLimit();
    if (flat || waits < allowance / (cold || jump ? 2 : 4)) {
      this.#startClimb(nowUs, cold, jump, allowance);
      return;
    }

    const knee = this.#capacity * this.#workUs;
    const { remeasureIntervalMs, remeasureReduceRatio } = this.#settings;
    // throughput grew with the limit: the knee is elsewhere
    const outgrown =
      this.#capacity > 1.15 * this.#provenCapacity &&
      nowUs > this.#provenUs + 250 * remeasureIntervalMs;
    // where hardly anything is refused there is little to gain from knowing better
    const isDue = (nowUs > this.#remeasureAtUs || outgrown) && this.#pressure >= CALM;
    // few in flight have little to lose by a wrong limit, and much by a trial: the first guess alone is looked at again
    const isWorthIt = knee > 5 || this.#patience < 1;
    // nor is there at the start, where a trial of a first guess costs most
    const isNeeded = cold && this.#window.refusedShare >= CALM;
    if (isNeeded || (isDue && isWorthIt)) {
      // a first guess may be too high, then a cut to it shows some waiting; or, since short calls return first, far too low
      const guess = Math.max(0.3 * this.#window.meanInflight, 0.85 * remeasureReduceRatio * knee);
      const lower = cold ? guess : remeasureReduceRatio * knee;
      this.#tryLower(nowUs, lower, this.#capacity, cold, this.#target());
      return;
    }
    const target = this.#target();
    this.#moveTo(this.#pressure < CALM ? Math.max(this.#limit, target) : target, nowUs);
  }

  /** The limit binds and hardly anything waits: more may be in flight. */
  #startClimb(nowUs: number, cold: boolean, jump: boolean, allowance: number): void {
    const measured = !this.#climbing || this.#window.meanInflight > 0.3 * this.#limit;
    this.#hasty = this.#climbing || cold || jump;
    if (this.#hasty) this.#capacityCalls = 0;
    this.#setLimit(Math.max(this.#limit, this.#target()));
    if (measured) {
      if (cold) this.#climbTo = 3 * this.#limit;
      else this.#climbTo = this.#hasty ? 2 * this.#limit : this.#limit + allowance;
    }
    this.#climbing = true;
    this.#window.open(nowUs);
  }

  // ---- the trial: does throughput fall with the calls in flight?

  #tryLower(
    nowUs: number,
    limit: number,
    throughput: number,
    fresh: boolean,
    returnTo: number,
    olderElasticity = -1,
  ): void {
    if (!this.#trying) this.#triedSinceUs = nowUs;
    this.#trying = true;
    this.#aboveThroughput = throughput;
    this.#aboveInflight = this.#window.meanInflight;
    this.#aboveLatencyUs = this.#window.meanLatencyUs;
    this.#aboveIsFresh = fresh;
    this.#aboveIsWhole = !fresh || this.#window.isWhole;
    this.#olderElasticity = olderElasticity;
    this.#returnTo = returnTo;
    this.#moveTo(limit, nowUs);
  }

  #learnFromTrial(nowUs: number, noise: number): void {
    const { throughput, meanInflight: inflight, meanLatencyUs: latencyUs } = this.#window;
    const off = latencyUs - this.#workUs;
    let lower = 0;
    let older = -1;
    // what a re-measurement finds as it was believed to be need not be looked at so soon again
    if (Math.abs(off) > 0.04 * this.#workUs) this.#patience = 1;
    else if (!this.#aboveIsFresh) {
      this.#patience = Math.max(1, Math.min(MOST_PATIENCE, 2 * this.#patience));
    }
    if (Math.abs(off) <= Math.max(0.08, 2 * noise) * this.#workUs) {
      this.#workUs += (off > 0 ? 0.2 : 0.8) * off; // as believed; what is above it may be some waiting
    } else if (off < 0) {
      this.#workUs = latencyUs; // less than believed: go on down while it falls
      lower = 0.75 * inflight;
    } else if (inflight < 1.5) {
      this.#workUs = latencyUs; // alone in there: nothing to wait for
    } else if (!this.#aboveIsFresh) {
      lower = 0.65 * inflight; // compare with a level measured just now
      older = Math.max(0, this.#elasticity());
    } else if (this.#isElastic(noise)) {
      this.#workUs = latencyUs; // fewer in flight, fewer done: the work itself takes longer
    } else if (inflight <= 5 && throughput < 0.85 * this.#aboveThroughput) {
      // few are left and fewer done: nobody waits here, though above they did
      this.#workUs = latencyUs;
      this.#capacity = this.#aboveThroughput;
    } else {
      this.#capacityCalls = Math.min(CAPACITY_DOUBT, this.#capacityCalls);
      this.#capacity = this.#aboveThroughput; // as many done: they only waited. On down, until the latency agrees
      const knee = this.#capacity * this.#workUs;
      lower = Math.min(0.75 * inflight, Math.max(0.5 * inflight, 0.85 * knee));
    }
    // the last steps tell little, unless the latency falls while hardly less is done: then some waited still
    const waited = off < 0 && inflight > 1.5 && throughput > 0.8 * this.#capacity;
    const goesOn = inflight > 5 || older >= 0 || waited;
    if (lower > 0 && goesOn) {
      this.#tryLower(nowUs, lower, throughput, true, this.#returnTo, older);
    } else this.#endTrial(nowUs);
  }

  /** d ln throughput ÷ d ln in-flight between the level above and this one: 1 if all were worked on, 0 if more only waited. */
  #elasticity(): number {
    const { throughput, meanInflight, meanLatencyUs } = this.#window;
    const step = Math.log(this.#aboveInflight / meanInflight);
    if (step <= 0.02) return 0;
    const fall = Math.log(this.#aboveThroughput / throughput);
    const relief = Math.log(this.#aboveLatencyUs / meanLatencyUs);
    // by Little's law 1 − d ln latency ÷ d ln in-flight is the same: the mean of both is less noisy
    const isWhole = this.#aboveIsWhole && this.#window.isWhole;
    return isWhole ? 0.5 + (0.5 * (fall - relief)) / step : 1 - relief / step;
  }

  #isElastic(noise: number): boolean {
    const elasticity = this.#elasticity();
    const step = Math.log(this.#aboveInflight / this.#window.meanInflight);
    const plain = Math.abs(elasticity - 0.5) * step > 1.5 * noise;
    return (plain ? elasticity : this.#olderElasticity) > 0.5;
  }

  #endTrial(nowUs: number): void {
    this.#trying = false;
    if (this.#trust < TRUSTED) this.#patience = LEAST_PATIENCE;
    this.#trust = TRUSTED;
    this.#provenCapacity = this.#sureCapacity();
    this.#provenUs = nowUs;
    // a trial may cost a fifth of the throughput for a fortieth of the time
    const { remeasureIntervalMs } = this.#settings;
    const intervalUs = remeasureIntervalMs * 1000;
    // what slow calls teach in a trial of ten seconds is not precise enough to be kept for ten minutes
    const inProportionUs = Math.min(40 * (nowUs - this.#triedSinceUs), LONGEST_PAUSE * intervalUs);
    const pauseUs = Math.max(this.#patience * intervalUs, inProportionUs);
    this.#remeasureAtUs = nowUs + pauseUs * (0.75 + 0.5 * this.#random());
    this.#limit = this.#returnTo;
    this.#moveTo(Math.min(4 * this.#limit, this.#target()), nowUs);
  }

  // ---- moving the limit

  #moveTo(limit: number, nowUs: number): void {
    const before = this.#limit;
    this.#setLimit(limit);
    this.#climbing = false;
    // calls that end just after a change belong to the old limit
    this.#settling = Math.abs(this.#limit - before) > 0.05 * before;
    this.#window.open(nowUs + (this.#settling ? this.#drainUs : 0));
  }

  #setLimit(limit: number): void {
    const { minConcurrency, maxConcurrency } = this.#settings;
    this.#limit = Math.max(minConcurrency, Math.min(maxConcurrency, limit));
    this.#maxConcurrency = Math.floor(this.#limit);
  }
}

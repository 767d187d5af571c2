import { type BucketLaw, TOKEN_TOLERANCE } from './law.js';

/**
 * Guava's warm-up curve: what the next token costs, in microseconds, by how cold the bucket is.
 *
 * Coldness is counted in tokens, from 0 (warm) to `max` (cold). Up to `threshold` a token costs the
 * stable interval; from there the price climbs in a straight line to `coldFactor` times that.
 * From cold to the threshold under full demand takes exactly the warm-up time, and idling from warm
 * to cold takes as long again.
 *
 * @see https://github.com/google/guava/blob/master/guava/src/com/google/common/util/concurrent/SmoothRateLimiter.java
 */
export class WarmUpCurve {
  readonly intervalUs: number;
  readonly coldIntervalUs: number;
  readonly threshold: number;
  readonly max: number;
  readonly slopeUs: number;
  /** Idle time that makes it colder by one token. */
  readonly coolUs: number;

  constructor(rate: number, warmUpUs: number, coldFactor: number) {
    this.intervalUs = 1e6 / rate;
    this.coldIntervalUs = coldFactor * this.intervalUs;
    this.threshold = (0.5 * warmUpUs) / this.intervalUs;
    this.max = this.threshold + (2 * warmUpUs) / (this.intervalUs + this.coldIntervalUs);
    this.slopeUs = (this.coldIntervalUs - this.intervalUs) / (this.max - this.threshold);
    this.coolUs = warmUpUs / this.max;
  }

  /** The price of the next token at this coldness. */
  priceUs(coldness: number): number {
    const above = coldness - this.threshold;
    return above > 0 ? this.intervalUs + above * this.slopeUs : this.intervalUs;
  }

  /** The sloped part of the price of `n` tokens, and how many of them it covers: the trapezoid. */
  slopedUs(coldness: number, n: number): { readonly tokens: number; readonly us: number } {
    const above = coldness - this.threshold;
    if (!(above > 0)) return { tokens: 0, us: 0 };
    const tokens = Math.min(above, n);
    const sides = this.priceUs(coldness) + this.priceUs(coldness - tokens);
    return { tokens, us: (tokens * sides) / 2 };
  }

  /** Tokens passed under full demand `elapsedUs` after a cold start. */
  passedFromCold(elapsedUs: number): number {
    const warmUpUs = this.max * this.coolUs;
    const slopedUs = Math.min(elapsedUs, warmUpUs);
    const afterwards = (elapsedUs - slopedUs) / this.intervalUs;
    if (this.slopeUs === 0) return slopedUs / this.intervalUs + afterwards;
    const root = Math.sqrt(Math.max(0, this.coldIntervalUs ** 2 - 2 * this.slopeUs * slopedUs));
    return (this.coldIntervalUs - root) / this.slopeUs + afterwards;
  }
}

const COLDNESS = 0;
const NEXT_FREE_US = 1;
const COOL_FROM_US = 2;

/**
 * A token bucket that warms up: cold, a token costs up to `coldFactor` times its stable price.
 *
 * The price of a grant is paid by moving `nextFree` on, as in Guava; three things are different.
 * - There is a burst: `n` is granted while `nextFree` lies no further ahead than `burst - n` stable
 *   intervals. A cold bucket so has about `burst / coldFactor` for a crowd, and a warm one all of it;
 *   never more than `burst + rate × time`.
 * - More than the burst is refused for good instead of being charged to whoever comes next.
 * - Idle time cools only when it exceeds the price of the last token: a caller somewhat slower than
 *   the rate counts as steady and warms the bucket, where Guava's goes cold again at every gap.
 */
export class WarmUpLaw implements BucketLaw {
  readonly width = 3;
  readonly #warmUpUs: number;
  readonly #coldFactor: number;
  // changed by hand only
  #rate: number;
  #burst: number;
  #curve: WarmUpCurve;
  // the newest time ever told; stands still while the rate is 0, so that what is owed stays owed
  #newestUs = 0;

  /** @param warmUpUs - more than 0 @param coldFactor - at least 1 */
  constructor(rate: number, burst: number, warmUpUs: number, coldFactor: number) {
    this.#warmUpUs = warmUpUs;
    this.#coldFactor = coldFactor;
    this.#rate = rate;
    this.#burst = burst;
    this.#curve = this.#curveAt(rate);
  }

  get rate(): number {
    return this.#rate;
  }

  get burst(): number {
    return this.#burst;
  }

  /** A burst and one more at the coldest price, its grace, and a whole cooling. */
  get freshWithinUs(): number {
    if (this.#rate === 0) return Number.POSITIVE_INFINITY;
    return 2 * (this.#burst + 1) * this.#curve.coldIntervalUs + this.#warmUpUs;
  }

  reset(cells: Float64Array, at: number, nowUs: number): void {
    const seenUs = this.#seen(nowUs);
    cells[at + COLDNESS] = this.#curve.max;
    cells[at + NEXT_FREE_US] = seenUs;
    cells[at + COOL_FROM_US] = seenUs;
  }

  tokens(cells: Float64Array, at: number, nowUs: number): number {
    const owedUs = Math.max(0, (cells[at + NEXT_FREE_US] as number) - this.#seen(nowUs));
    return this.#burst - owedUs / this.#curve.intervalUs;
  }

  waitUs(cells: Float64Array, at: number, n: number, nowUs: number): number {
    if (n === 0) return 0;
    if (n > this.#burst) return Number.POSITIVE_INFINITY;
    const creditUs = (this.#burst - n + TOKEN_TOLERANCE) * this.#curve.intervalUs;
    const waitUs = (cells[at + NEXT_FREE_US] as number) - creditUs - this.#seen(nowUs);
    if (waitUs <= 0) return 0;
    return this.#rate === 0 ? Number.POSITIVE_INFINITY : Math.ceil(waitUs);
  }

  take(cells: Float64Array, at: number, n: number, nowUs: number): number {
    const waitUs = this.waitUs(cells, at, n, nowUs);
    if (waitUs === 0) this.#charge(cells, at, n);
    return waitUs;
  }

  reserve(cells: Float64Array, at: number, n: number, nowUs: number): number {
    const waitUs = this.waitUs(cells, at, n, nowUs);
    if (waitUs < Number.POSITIVE_INFINITY) this.#charge(cells, at, n);
    return waitUs;
  }

  refund(cells: Float64Array, at: number, n: number, nowUs: number): void {
    // at the stable price: what a cold token cost more stays paid, so a refund never warms
    const backUs = n * this.#curve.intervalUs;
    const nextFreeUs = (cells[at + NEXT_FREE_US] as number) - backUs;
    cells[at + NEXT_FREE_US] = Math.max(nextFreeUs, this.#seen(nowUs));
  }

  paidAtUs(cells: Float64Array, at: number): number {
    const paidAtUs = cells[at + NEXT_FREE_US] as number;
    return this.#rate === 0 && paidAtUs > this.#newestUs ? Number.POSITIVE_INFINITY : paidAtUs;
  }

  freshAtUs(cells: Float64Array, at: number): number {
    const toCold = (this.#curve.max - (cells[at + COLDNESS] as number)) * this.#curve.coolUs;
    return Math.max(this.paidAtUs(cells, at), (cells[at + COOL_FROM_US] as number) + toCold);
  }

  resume(cells: Float64Array, at: number, paidAtUs: number, nowUs: number): void {
    this.reset(cells, at, nowUs);
    if (paidAtUs <= nowUs) return;
    const wholeUs = this.#burst * this.#curve.intervalUs;
    const owedUs = paidAtUs < Number.POSITIVE_INFINITY ? paidAtUs - nowUs : wholeUs;
    cells[at + NEXT_FREE_US] = nowUs + owedUs;
    cells[at + COOL_FROM_US] = nowUs + owedUs;
  }

  /** Keeps the tokens at hand (a larger burst mints none) and how cold it is as a share of the coldest. */
  retune(cells: Float64Array, rate: number, burst: number, nowUs: number): void {
    const fromUs = this.#seen(nowUs);
    const toUs = Math.max(fromUs, nowUs); // later than fromUs at the end of a stop
    const before = this.#curve;
    const curve = rate === 0 ? before : this.#curveAt(rate); // stopped, it keeps its scale
    const stretch = curve.intervalUs / before.intervalUs;
    for (let at = 0; at < cells.length; at += this.width) {
      this.#cool(cells, at, toUs);
      cells[at + COLDNESS] = ((cells[at + COLDNESS] as number) / before.max) * curve.max;
      const owedUs = Math.max(0, (cells[at + NEXT_FREE_US] as number) - fromUs) * stretch;
      cells[at + NEXT_FREE_US] =
        toUs + Math.max(0, owedUs + (burst - this.#burst) * curve.intervalUs);
      const graceUs = Math.max(0, (cells[at + COOL_FROM_US] as number) - toUs);
      cells[at + COOL_FROM_US] = toUs + graceUs * stretch;
    }
    this.#rate = rate;
    this.#burst = burst;
    this.#curve = curve;
    this.#newestUs = toUs;
  }

  #curveAt(rate: number): WarmUpCurve {
    // a limiter made stopped has nothing to keep a scale of: any will do until its rate is set
    return new WarmUpCurve(rate === 0 ? 1 : rate, this.#warmUpUs, this.#coldFactor);
  }

  #seen(nowUs: number): number {
    if (this.#rate > 0 && nowUs > this.#newestUs) this.#newestUs = nowUs;
    return this.#newestUs;
  }

  #cool(cells: Float64Array, at: number, nowUs: number): void {
    const coolFromUs = cells[at + COOL_FROM_US] as number;
    if (nowUs <= coolFromUs) return;
    const colder = (cells[at + COLDNESS] as number) + (nowUs - coolFromUs) / this.#curve.coolUs;
    cells[at + COLDNESS] = Math.min(this.#curve.max, colder);
    cells[at + COOL_FROM_US] = nowUs;
  }

  #charge(cells: Float64Array, at: number, n: number): void {
    if (n === 0) return;
    const nowUs = this.#newestUs;
    this.#cool(cells, at, nowUs);
    const coldness = cells[at + COLDNESS] as number;
    const sloped = this.#curve.slopedUs(coldness, n);
    const costUs = sloped.us + (n - sloped.tokens) * this.#curve.intervalUs;
    const nextFreeUs = Math.max(nowUs, cells[at + NEXT_FREE_US] as number) + costUs;
    cells[at + COLDNESS] = Math.max(0, coldness - n);
    cells[at + NEXT_FREE_US] = nextFreeUs;
    cells[at + COOL_FROM_US] = nextFreeUs + costUs / n;
  }
}

/** Guava cuts each summand of a cost to whole microseconds, and not-a-number to 0. */
function cut(us: number): number {
  return Math.trunc(us) || 0;
}

/**
 * Guava's smooth limiter to the microsecond, traps included: the strict grade.
 *
 * A request is granted once the one before is paid for, whatever it asks itself, and the next one
 * pays. `stored` is what idle time has saved (bursty) or how cold it is (warm-up).
 */
export abstract class SmoothLaw implements BucketLaw {
  readonly width = 2;
  #rate: number;
  #burst: number;

  constructor(rate: number, burst: number) {
    this.#rate = rate;
    this.#burst = burst;
  }

  get rate(): number {
    return this.#rate;
  }

  get burst(): number {
    return this.#burst;
  }

  get freshWithinUs(): number {
    return Number.POSITIVE_INFINITY;
  }

  protected abstract readonly initiallyStored: number;
  protected abstract readonly max: number;
  /** Idle time that adds one to what is stored. */
  protected abstract readonly coolUs: number;
  protected abstract readonly intervalUs: number;
  /** What taking `n` of the stored ones costs. */
  protected abstract storedCostUs(stored: number, n: number): number;
  /** Takes the new rate on and tells what becomes of `stored`. */
  protected abstract adopt(rate: number, burst: number): (stored: number) => number;

  reset(cells: Float64Array, at: number, nowUs: number): void {
    cells[at + COLDNESS] = this.initiallyStored;
    cells[at + NEXT_FREE_US] = nowUs;
  }

  tokens(cells: Float64Array, at: number, nowUs: number): number {
    const owedUs = (cells[at + NEXT_FREE_US] as number) - nowUs;
    return owedUs > 0 ? -owedUs / this.intervalUs : this.#storedAt(cells, at, nowUs);
  }

  waitUs(cells: Float64Array, at: number, n: number, nowUs: number): number {
    return n === 0 ? 0 : Math.max(0, (cells[at + NEXT_FREE_US] as number) - nowUs);
  }

  take(cells: Float64Array, at: number, n: number, nowUs: number): number {
    const waitUs = this.waitUs(cells, at, n, nowUs);
    return waitUs > 0 ? waitUs : this.reserve(cells, at, n, nowUs);
  }

  reserve(cells: Float64Array, at: number, n: number, nowUs: number): number {
    if (n === 0) return 0;
    this.#sync(cells, at, nowUs);
    const stored = cells[at + COLDNESS] as number;
    const nextFreeUs = cells[at + NEXT_FREE_US] as number;
    const spent = Math.min(n, stored);
    const costUs = this.storedCostUs(stored, spent) + cut((n - spent) * this.intervalUs);
    cells[at + COLDNESS] = stored - spent;
    cells[at + NEXT_FREE_US] = nextFreeUs + costUs;
    return Math.max(0, nextFreeUs - nowUs);
  }

  refund(cells: Float64Array, at: number, n: number, nowUs: number): void {
    const nextFreeUs = (cells[at + NEXT_FREE_US] as number) - cut(n * this.intervalUs);
    cells[at + NEXT_FREE_US] = Math.max(nowUs, nextFreeUs);
  }

  paidAtUs(cells: Float64Array, at: number): number {
    return cells[at + NEXT_FREE_US] as number;
  }

  freshAtUs(): number {
    return Number.POSITIVE_INFINITY; // what idle time has stored is never what it started with
  }

  resume(cells: Float64Array, at: number, paidAtUs: number, nowUs: number): void {
    this.reset(cells, at, nowUs);
    cells[at + NEXT_FREE_US] = Math.max(nowUs, paidAtUs);
  }

  retune(cells: Float64Array, rate: number, burst: number, nowUs: number): void {
    for (let at = 0; at < cells.length; at += this.width) this.#sync(cells, at, nowUs);
    const rescale = this.adopt(rate, burst);
    this.#rate = rate;
    this.#burst = burst;
    for (let at = 0; at < cells.length; at += this.width) {
      cells[at + COLDNESS] = rescale(cells[at + COLDNESS] as number);
    }
  }

  #storedAt(cells: Float64Array, at: number, nowUs: number): number {
    const idleUs = nowUs - (cells[at + NEXT_FREE_US] as number);
    const stored = cells[at + COLDNESS] as number;
    return idleUs > 0 ? Math.min(this.max, stored + idleUs / this.coolUs) : stored;
  }

  #sync(cells: Float64Array, at: number, nowUs: number): void {
    if (nowUs <= (cells[at + NEXT_FREE_US] as number)) return;
    cells[at + COLDNESS] = this.#storedAt(cells, at, nowUs);
    cells[at + NEXT_FREE_US] = nowUs;
  }
}

/** Strict, without warm-up: `burst` is what idle time may save; the store starts empty. */
export class SmoothBurstyLaw extends SmoothLaw {
  protected readonly initiallyStored = 0;
  protected max: number;
  protected intervalUs: number;
  protected coolUs: number;

  constructor(rate: number, burst: number) {
    super(rate, burst);
    this.max = burst;
    this.intervalUs = this.coolUs = 1e6 / rate;
  }

  protected storedCostUs(): number {
    return 0;
  }

  protected adopt(rate: number, burst: number): (stored: number) => number {
    const before = this.max;
    this.max = burst;
    this.intervalUs = this.coolUs = 1e6 / rate;
    return (stored) => (before === 0 ? 0 : (stored * this.max) / before);
  }
}

/** Strict, with warm-up: what is stored is coldness; it starts cold, and `burst` says nothing. */
export class SmoothWarmUpLaw extends SmoothLaw {
  readonly #warmUpUs: number;
  readonly #coldFactor: number;
  #curve: WarmUpCurve;

  constructor(rate: number, warmUpUs: number, coldFactor: number) {
    super(rate, 1);
    this.#warmUpUs = warmUpUs;
    this.#coldFactor = coldFactor;
    this.#curve = new WarmUpCurve(rate, warmUpUs, coldFactor);
  }

  get curve(): WarmUpCurve {
    return this.#curve;
  }

  protected get initiallyStored(): number {
    return this.#curve.max;
  }

  protected get max(): number {
    return this.#curve.max;
  }

  protected get coolUs(): number {
    return this.#curve.coolUs;
  }

  protected get intervalUs(): number {
    return this.#curve.intervalUs;
  }

  protected storedCostUs(stored: number, n: number): number {
    const sloped = this.#curve.slopedUs(stored, n);
    return cut(sloped.us) + cut((n - sloped.tokens) * this.#curve.intervalUs);
  }

  protected adopt(rate: number): (stored: number) => number {
    const before = this.#curve;
    this.#curve = new WarmUpCurve(rate, this.#warmUpUs, this.#coldFactor);
    return (stored) =>
      before.max === 0 ? this.#curve.max : (stored * this.#curve.max) / before.max;
  }
}

import { type BucketLaw, refillUs, TOKEN_TOLERANCE } from './law.js';

const TOKENS = 0;
const STAMP_US = 1;

/**
 * The plain token bucket: `rate` tokens a second come in, at most `burst` are saved.
 *
 * Refilled by arithmetic when somebody looks: `min(burst, tokens + elapsed × rate)`. Only a grant is
 * written down, so that looking often neither loses nor makes fractions of a token. Over any
 * interval at most `burst + rate × time` is granted.
 */
export class TokenBucketLaw implements BucketLaw {
  readonly width = 2;
  // changed by hand only
  #rate: number;
  #burst: number;
  // the newest time ever told: a clock that goes back stands still here
  #newestUs = 0;

  /** @param rate - tokens per second, at least 0 @param burst - at least 0; buckets start with this many */
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
    if (this.#burst === 0) return 0;
    return (this.#burst * 1e6) / this.#rate + 1; // a cut upwards
  }

  reset(cells: Float64Array, at: number, nowUs: number): void {
    cells[at + TOKENS] = this.#burst;
    cells[at + STAMP_US] = this.#seen(nowUs);
  }

  tokens(cells: Float64Array, at: number, nowUs: number): number {
    return this.#amount(cells, at, this.#seen(nowUs));
  }

  waitUs(cells: Float64Array, at: number, n: number, nowUs: number): number {
    return this.#waitFor(n, this.#amount(cells, at, this.#seen(nowUs)));
  }

  take(cells: Float64Array, at: number, n: number, nowUs: number): number {
    const seenUs = this.#seen(nowUs);
    const amount = this.#amount(cells, at, seenUs);
    if (n - amount > TOKEN_TOLERANCE && n > 0) return this.#waitFor(n, amount);
    cells[at + TOKENS] = amount - n;
    cells[at + STAMP_US] = seenUs;
    return 0;
  }

  reserve(cells: Float64Array, at: number, n: number, nowUs: number): number {
    if (n > this.#burst) return Number.POSITIVE_INFINITY;
    const seenUs = this.#seen(nowUs);
    const left = this.#amount(cells, at, seenUs) - n;
    if (left < -TOKEN_TOLERANCE && this.#rate === 0) return Number.POSITIVE_INFINITY;
    this.#write(cells, at, left, seenUs);
    return left < -TOKEN_TOLERANCE ? refillUs(-left, this.#rate) : 0;
  }

  refund(cells: Float64Array, at: number, n: number, nowUs: number): void {
    const seenUs = this.#seen(nowUs);
    const amount = this.#amount(cells, at, seenUs) + n;
    this.#write(cells, at, Math.min(this.#burst, amount), seenUs);
  }

  paidAtUs(cells: Float64Array, at: number): number {
    const missing = this.#burst - (cells[at + TOKENS] as number);
    if (missing <= TOKEN_TOLERANCE) return cells[at + STAMP_US] as number;
    return (cells[at + STAMP_US] as number) + refillUs(missing, this.#rate);
  }

  freshAtUs(cells: Float64Array, at: number): number {
    return this.paidAtUs(cells, at); // full is all there is to know of it
  }

  resume(cells: Float64Array, at: number, paidAtUs: number, nowUs: number): void {
    this.reset(cells, at, nowUs);
    if (paidAtUs <= nowUs) return;
    const missing = ((paidAtUs - nowUs) * this.#rate) / 1e6;
    // at rate 0 the time says nothing: it had taken something, so it has nothing
    const known = paidAtUs < Number.POSITIVE_INFINITY;
    cells[at + TOKENS] = known ? this.#burst - missing : 0;
  }

  retune(cells: Float64Array, rate: number, burst: number, nowUs: number): void {
    const seenUs = this.#seen(nowUs);
    for (let at = 0; at < cells.length; at += this.width) {
      this.#write(cells, at, Math.min(burst, this.#amount(cells, at, seenUs)), seenUs);
    }
    this.#rate = rate;
    this.#burst = burst;
  }

  #seen(nowUs: number): number {
    if (nowUs > this.#newestUs) this.#newestUs = nowUs;
    return this.#newestUs;
  }

  #amount(cells: Float64Array, at: number, nowUs: number): number {
    const elapsedUs = nowUs - (cells[at + STAMP_US] as number);
    const amount = (cells[at + TOKENS] as number) + (elapsedUs * this.#rate) / 1e6;
    return Math.min(this.#burst, amount);
  }

  #waitFor(n: number, amount: number): number {
    if (n === 0) return 0;
    if (n > this.#burst) return Number.POSITIVE_INFINITY;
    const missing = n - amount;
    return missing <= TOKEN_TOLERANCE ? 0 : refillUs(missing, this.#rate);
  }

  #write(cells: Float64Array, at: number, tokens: number, nowUs: number): void {
    cells[at + TOKENS] = tokens;
    cells[at + STAMP_US] = nowUs;
  }
}

import type { BucketLaw } from './law.js';

/** One bucket under any law: an engine of its own, for a limiter without keys. Times are whole microseconds. */
export class Bucket {
  readonly #law: BucketLaw;
  readonly #cells: Float64Array;

  constructor(law: BucketLaw, nowUs: number) {
    this.#law = law;
    this.#cells = new Float64Array(law.width);
    law.reset(this.#cells, 0, nowUs);
  }

  tokens(nowUs: number): number {
    return this.#law.tokens(this.#cells, 0, nowUs);
  }

  /** Asks only; see {@link BucketLaw.waitUs}. */
  waitUs(n: number, nowUs: number): number {
    return this.#law.waitUs(this.#cells, 0, n, nowUs);
  }

  /** 0 if taken, else microseconds to wait; see {@link BucketLaw.take}. */
  take(n: number, nowUs: number): number {
    return this.#law.take(this.#cells, 0, n, nowUs);
  }

  /** Takes now, microseconds to wait before using it; see {@link BucketLaw.reserve}. */
  reserve(n: number, nowUs: number): number {
    return this.#law.reserve(this.#cells, 0, n, nowUs);
  }

  refund(n: number, nowUs: number): void {
    this.#law.refund(this.#cells, 0, n, nowUs);
  }

  reset(nowUs: number): void {
    this.#law.reset(this.#cells, 0, nowUs);
  }

  paidAtUs(): number {
    return this.#law.paidAtUs(this.#cells, 0);
  }

  retune(rate: number, burst: number, nowUs: number): void {
    this.#law.retune(this.#cells, rate, burst, nowUs);
  }

  /** The law's raw numbers, as vectors record them: see its file for what stands where. */
  cell(index: number): number {
    return this.#cells[index] as number;
  }
}

import type { Limiter, Outcome } from '@elimit/core';

const LEAST = 20;
const MOST = 200;
const QUEUE = 4;
const TOLERANCE = 1.5;
const SMOOTHING = 0.2;
const LONG_WINDOW = 600;
const WARM_UP = 10;
const WINDOW_US = 1e6;
const WINDOW_CALLS = 10;

/**
 * Written anew after `Gradient2Limit` of Netflix's concurrency-limits behind its `WindowedLimit`, both at their defaults:
 * the mean latency of a one-second window is compared with a long average of such means. A yardstick.
 */
export class Gradient2Limiter implements Limiter {
  #limit = LEAST;
  #longUs = 0;
  #windows = 0;
  // the window
  #endUs = 0;
  #calls = 0;
  #sumUs = 0;
  #inflight = 0;

  get maxConcurrency(): number {
    return Math.floor(this.#limit);
  }

  admits(inflight: number): boolean {
    return inflight <= this.maxConcurrency;
  }

  started(): void {}

  refused(): void {}

  record(outcome: Outcome, latencyUs: number, nowUs: number, inflight: number): void {
    if (outcome !== 'success') return;
    this.#calls++;
    this.#sumUs += latencyUs;
    this.#inflight = Math.max(this.#inflight, inflight);
    if (nowUs <= this.#endUs || this.#calls < WINDOW_CALLS) return;
    this.#move(this.#sumUs / this.#calls);
    this.#endUs = nowUs + WINDOW_US;
    this.#calls = this.#sumUs = this.#inflight = 0;
  }

  #move(shortUs: number): void {
    this.#windows++;
    const weight = this.#windows <= WARM_UP ? 1 / this.#windows : 2 / (LONG_WINDOW + 1);
    this.#longUs += weight * (shortUs - this.#longUs);
    if (this.#longUs / shortUs > 2) this.#longUs *= 0.95;
    if (this.#inflight < this.#limit / 2) return;
    const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * this.#longUs) / shortUs));
    const next = this.#limit * gradient + QUEUE;
    this.#limit += SMOOTHING * (Math.max(LEAST, Math.min(MOST, next)) - this.#limit);
  }
}

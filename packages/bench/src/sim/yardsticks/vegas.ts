import type { Limiter, Outcome, Random } from '@elimit/core';

/** How many limits' worth of calls pass between two probes. */
const PROBE_EVERY = 30;
const MOST = 1000;

/**
 * TCP Vegas for calls, written anew after `VegasLimit` of Netflix's concurrency-limits at its defaults: the queue is taken to
 * be `limit × (1 − least latency ÷ latency)`, and every call moves the limit by the logarithm of itself. A yardstick.
 */
export class VegasLimiter implements Limiter {
  readonly #random: Random;
  #limit = 20;
  #leastUs = 0;
  #calls = 0;
  #jitter: number;
  #dropped = false;

  constructor(random: Random) {
    this.#random = random;
    this.#jitter = 0.5 + random() / 2;
  }

  get maxConcurrency(): number {
    return Math.floor(this.#limit);
  }

  admits(inflight: number): boolean {
    return inflight <= this.maxConcurrency;
  }

  started(): void {}

  refused(): void {} // a refusal of its own is no drop; only the service's are

  record(outcome: Outcome, latencyUs: number, _nowUs: number, inflight: number): void {
    if (outcome === 'ignored') return;
    this.#dropped = outcome !== 'success';
    if (++this.#calls >= this.#jitter * PROBE_EVERY * this.#limit) {
      this.#jitter = 0.5 + this.#random() / 2;
      this.#calls = 0;
      this.#leastUs = latencyUs;
      return;
    }
    if (this.#leastUs === 0 || latencyUs < this.#leastUs) {
      this.#leastUs = latencyUs;
      return;
    }
    this.#move(latencyUs, inflight);
  }

  #move(latencyUs: number, inflight: number): void {
    const step = Math.max(1, Math.floor(Math.log10(this.#limit)));
    const queue = Math.ceil(this.#limit * (1 - this.#leastUs / latencyUs));
    let next = this.#limit;
    if (this.#dropped) next -= step;
    else if (inflight * 2 < this.#limit) return;
    else if (queue <= step) next += 6 * step;
    else if (queue < 3 * step) next += step;
    else if (queue > 6 * step) next -= step;
    this.#limit = Math.max(1, Math.min(MOST, next));
  }
}

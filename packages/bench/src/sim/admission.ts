import type { Limiter, Outcome } from '@elimit/core';
import type { PriorityClass } from './scenario.js';

/** What stands before the plant. Calls are small whole numbers that are used again once they have ended. */
export interface Admission {
  /** The limit right now, for the record. */
  readonly limit: number;
  admit(call: number, nowUs: number, remainingUs: number, priority: PriorityClass): boolean;
  end(call: number, outcome: Outcome, nowUs: number): void;
}

/** An engine with nothing around it: what a guard does for calls without classes, at a quarter of the cost. */
export class LimiterAdmission implements Admission {
  readonly #limiter: Limiter;
  #inflight = 0;
  #startedUs = new Float64Array(256);
  #inflightAtStart = new Int32Array(256);

  constructor(limiter: Limiter) {
    this.#limiter = limiter;
  }

  get limit(): number {
    return this.#limiter.maxConcurrency;
  }

  admit(call: number, nowUs: number, remainingUs: number): boolean {
    const inflight = this.#inflight + 1;
    if (!this.#limiter.admits(inflight, nowUs, remainingUs)) {
      this.#limiter.refused(nowUs);
      return false;
    }
    this.#inflight = inflight;
    if (call >= this.#startedUs.length) this.#grow(call);
    this.#startedUs[call] = nowUs;
    this.#inflightAtStart[call] = inflight;
    this.#limiter.started(nowUs, inflight);
    return true;
  }

  end(call: number, outcome: Outcome, nowUs: number): void {
    this.#inflight--;
    const latencyUs = nowUs - (this.#startedUs[call] as number);
    this.#limiter.record(outcome, latencyUs, nowUs, this.#inflightAtStart[call] as number);
  }

  #grow(call: number): void {
    const size = Math.max(call + 1, 2 * this.#startedUs.length);
    const startedUs = new Float64Array(size);
    startedUs.set(this.#startedUs);
    this.#startedUs = startedUs;
    const inflightAtStart = new Int32Array(size);
    inflightAtStart.set(this.#inflightAtStart);
    this.#inflightAtStart = inflightAtStart;
  }
}

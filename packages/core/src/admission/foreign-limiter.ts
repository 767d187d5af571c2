import {
  type Limiter,
  type LimiterWarning,
  timeoutUsOf,
  type WarningLimiter,
  warningOf,
} from '../limiter/limiter.js';
import type { Outcome } from '../outcome.js';

/**
 * A limiter that was given to a guard from outside. The contract forbids it to throw, but a guard must not throw
 * at a call even so: whatever such a limiter throws becomes a warning, and it limits nothing while it cannot
 * answer. A broken limiter must not shut a healthy service.
 */
export class ForeignLimiter implements WarningLimiter {
  readonly #given: Limiter;
  /** The last limit that could be read. */
  #limit = Number.POSITIVE_INFINITY;
  #fault: LimiterWarning | undefined;

  constructor(given: Limiter) {
    this.#given = given;
  }

  get maxConcurrency(): number {
    try {
      const limit = this.#given.maxConcurrency;
      // what is no number, NaN included, is no limit either
      if (typeof limit === 'number' && limit >= 0) this.#limit = limit;
    } catch (error) {
      this.#failed('maxConcurrency', error);
    }
    return this.#limit;
  }

  get timeoutUs(): number {
    try {
      return timeoutUsOf(this.#given);
    } catch (error) {
      this.#failed('timeoutUs', error);
      return Number.POSITIVE_INFINITY;
    }
  }

  admits(inflight: number, nowUs: number, remainingUs: number): boolean {
    try {
      return this.#given.admits(inflight, nowUs, remainingUs);
    } catch (error) {
      this.#failed('admits', error);
      return true;
    }
  }

  started(nowUs: number, inflight: number): void {
    try {
      this.#given.started(nowUs, inflight);
    } catch (error) {
      this.#failed('started', error);
    }
  }

  refused(nowUs: number): void {
    try {
      this.#given.refused(nowUs);
    } catch (error) {
      this.#failed('refused', error);
    }
  }

  record(outcome: Outcome, latencyUs: number, nowUs: number, inflightAtStart: number): void {
    try {
      this.#given.record(outcome, latencyUs, nowUs, inflightAtStart);
    } catch (error) {
      this.#failed('record', error);
    }
  }

  warning(): LimiterWarning | undefined {
    if (this.#fault !== undefined) return this.#fault;
    try {
      return warningOf(this.#given);
    } catch (error) {
      this.#failed('warning', error);
      return this.#fault;
    }
  }

  #failed(member: string, error: unknown): void {
    if (this.#fault !== undefined) return;
    const why = error instanceof Error ? error.message : 'no Error';
    this.#fault = {
      code: 'WARN_LIMITER_THROWS',
      message: `the limiter threw in ${member} (${why}); where it cannot answer, it limits nothing`,
    };
  }
}

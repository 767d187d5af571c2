import {
  createGuard,
  type Guard,
  type MaxConcurrency,
  type Outcome,
  type Permit,
  type Random,
} from '@elimit/core';
import type { Admission } from './admission.js';
import type { PriorityClass } from './scenario.js';

/** The real guard, on the simulator's clock. */
export class GuardAdmission implements Admission {
  readonly #guard: Guard;
  readonly #permits: (Permit | undefined)[] = [];
  #nowUs: number;

  constructor(limit: MaxConcurrency, random: Random, startUs: number) {
    this.#nowUs = startUs;
    this.#guard = createGuard({
      limit,
      random,
      clock: { nowUs: () => this.#nowUs },
      registry: false,
    });
  }

  get limit(): number {
    return this.#guard.maxConcurrency;
  }

  admit(call: number, nowUs: number, remainingUs: number, priority: PriorityClass): boolean {
    this.#nowUs = nowUs;
    const timeoutMs = remainingUs === Infinity ? undefined : remainingUs / 1000;
    const entry = this.#guard.tryAcquire({ priority, timeoutMs });
    if (!entry.admitted) return false;
    this.#permits[call] = entry;
    return true;
  }

  end(call: number, outcome: Outcome, nowUs: number): void {
    this.#nowUs = nowUs;
    this.#permits[call]?.release(outcome);
    this.#permits[call] = undefined;
  }
}

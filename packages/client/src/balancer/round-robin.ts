import type { Random } from '@elimit/core';
import type { Balancer, Candidate } from './balancer.js';

/** One after the other, from a random start so that many processes do not walk in step. */
export class RoundRobinBalancer implements Balancer {
  #next: number;

  constructor(random: Random) {
    this.#next = Math.floor(random() * 2 ** 16);
  }

  pick(candidates: readonly Candidate[]): Candidate {
    const picked = candidates[this.#next % candidates.length] as Candidate;
    this.#next = (this.#next + 1) % Number.MAX_SAFE_INTEGER;
    return picked;
  }
}

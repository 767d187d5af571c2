import type { Random } from '@elimit/core';
import type { Balancer, Candidate } from './balancer.js';

/** Anyone, with equal chances. */
export class RandomBalancer implements Balancer {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  pick(candidates: readonly Candidate[]): Candidate {
    return candidates[Math.floor(this.#random() * candidates.length)] as Candidate;
  }
}

import type { Random } from '@elimit/core';
import type { Balancer, Candidate } from './balancer.js';

/**
 * Whoever was picked longest ago. That is one after the other, and stays so while some are isolated or
 * left out of a retry, where counting positions would favour their neighbours. The start is random, so
 * that many processes do not walk in step.
 */
export class RoundRobinBalancer implements Balancer {
  readonly #start: number;
  /** When each was picked last, counted in picks. */
  readonly #turns = new WeakMap<Candidate, number>();
  #turn = 0;

  constructor(random: Random) {
    this.#start = Math.floor(random() * 2 ** 16);
  }

  pick(candidates: readonly Candidate[]): Candidate {
    const count = candidates.length;
    let picked = candidates[0] as Candidate;
    let longestAgo = Number.POSITIVE_INFINITY;
    for (let i = 0; i < count; i++) {
      const candidate = candidates[(this.#start + i) % count] as Candidate;
      const turn = this.#turns.get(candidate) ?? 0;
      if (turn < longestAgo) {
        longestAgo = turn;
        picked = candidate;
      }
    }
    this.#turns.set(picked, ++this.#turn);
    return picked;
  }
}

import type { Balancer, Candidate } from './balancer.js';

/**
 * Takes turns by weight, smoothly: weights 5, 1, 1 give a a b a c a a, not five of a kind in a row. The law
 * is nginx's: everybody gains its weight, the richest is picked and pays for all. Whoever is left out of a
 * pick (isolated, or just tried) neither gains nor pays, so retries shift nobody's turn.
 */
export class Rotation implements Balancer {
  // set once
  readonly #weightOf: (candidate: Candidate) => number;
  readonly #start: number;
  /** What each has gained and not yet paid. */
  readonly #credit = new WeakMap<Candidate, number>();

  /** @param start - where to begin among equals, a whole number from 0 */
  constructor(weightOf: (candidate: Candidate) => number, start: number) {
    this.#weightOf = weightOf;
    this.#start = start;
  }

  pick(candidates: readonly Candidate[]): Candidate {
    const count = candidates.length;
    let richest = candidates[0] as Candidate;
    let most = Number.NEGATIVE_INFINITY;
    let total = 0;
    for (let i = 0; i < count; i++) {
      const candidate = candidates[(this.#start + i) % count] as Candidate;
      const weight = this.#weightOf(candidate);
      const credit = (this.#credit.get(candidate) ?? 0) + weight;
      this.#credit.set(candidate, credit);
      total += weight;
      if (credit > most) {
        most = credit;
        richest = candidate;
      }
    }
    this.#credit.set(richest, most - total);
    return richest;
  }
}

import type { Balancer, Candidate } from './balancer.js';

/**
 * Round robin by weight, smoothly: weights 5, 1, 1 give a a b a c a a, not five of a kind in a row.
 * The law is nginx's: everybody gains its weight, the richest is picked and pays for all.
 */
export class WeightedBalancer implements Balancer {
  /** What each has gained and not yet paid, by candidate. */
  readonly #credit = new WeakMap<Candidate, number>();

  pick(candidates: readonly Candidate[]): Candidate {
    let richest = candidates[0] as Candidate;
    let most = Number.NEGATIVE_INFINITY;
    let total = 0;
    for (const candidate of candidates) {
      const credit = (this.#credit.get(candidate) ?? 0) + candidate.weight;
      this.#credit.set(candidate, credit);
      total += candidate.weight;
      if (credit > most) {
        most = credit;
        richest = candidate;
      }
    }
    this.#credit.set(richest, most - total);
    return richest;
  }
}

import type { Random } from '@elimit/core';
import type { Balancer, Candidate } from './balancer.js';

/**
 * Of two at random the one with the lower `latency × (in flight + 1) ÷ weight`. Two, and not the best of
 * all: many clients that all run to the best one would make it the worst.
 */
export class LeastLoadedBalancer implements Balancer {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  pick(candidates: readonly Candidate[]): Candidate {
    const count = candidates.length;
    if (count === 1) return candidates[0] as Candidate;
    const first = Math.floor(this.#random() * count);
    // any other one: shifts past the first
    const other = Math.floor(this.#random() * (count - 1));
    const a = candidates[first] as Candidate;
    const b = candidates[other < first ? other : other + 1] as Candidate;
    const excess = loadOf(b, a) - loadOf(a, b);
    return excess < 0 || (excess === 0 && b.loadLatencyUs === 0) ? b : a;
  }
}

/** One without an answer yet is taken to be as fast as the one it is compared with, and goes first if equal. */
function loadOf(candidate: Candidate, other: Candidate): number {
  const latencyUs = candidate.loadLatencyUs || other.loadLatencyUs || 1;
  return (latencyUs * (candidate.inflight + 1)) / candidate.weight;
}

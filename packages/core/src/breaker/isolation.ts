import type { Random } from '../random.js';

/** How long isolations last. Times in microseconds. */
export interface IsolationRules {
  readonly minUs: number;
  readonly maxUs: number;
  /** A good time of this length halves what an isolation has grown to. */
  readonly relapseUs: number;
  /** How far chance moves a length, 0 to 1: breakers that opened together come back one by one. */
  readonly jitterRatio: number;
}

/**
 * How long open lasts: the minimum at first, twice as long after each failed half-open phase, never more
 * than the maximum. Good time after the return is forgiving: opening again at once doubles the length too,
 * opening after `relapseUs` repeats it, opening much later starts from the minimum.
 */
export class Isolation {
  // set once
  readonly #random: Random;
  // moves with every isolation
  #baseUs = 0;
  #lengthUs = 0;
  #startUs = 0;
  #returnedUs = Number.NEGATIVE_INFINITY; // long ago: the first isolation is no relapse, whatever the clock reads
  #trial = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Length of the present or last isolation; 0 before the first. */
  get lengthUs(): number {
    return this.#lengthUs;
  }

  get endUs(): number {
    return this.#startUs + this.#lengthUs;
  }

  begin(nowUs: number, rules: IsolationRules): void {
    const { minUs, maxUs, relapseUs, jitterRatio } = rules;
    const goodUs = this.#trial ? 0 : this.goodUs(nowUs);
    const kept = goodUs === 0 ? 1 : 2 ** (-goodUs / relapseUs);
    this.#baseUs = Math.min(maxUs, Math.max(minUs, this.#baseUs * 2 * kept));
    // both ends stay within the bounds, so the shortest and the longest are jittered as well
    const lowUs = Math.max(minUs, this.#baseUs * (1 - jitterRatio));
    const highUs = Math.min(maxUs, this.#baseUs * (1 + jitterRatio));
    this.#lengthUs = Math.round(lowUs + this.#random() * (highUs - lowUs));
    this.#startUs = nowUs;
    this.#trial = false;
  }

  /** Time since the return from the last isolation; `Infinity` before the first. */
  goodUs(nowUs: number): number {
    return Math.max(0, nowUs - this.#returnedUs);
  }

  /** Half-open began: until the return, every isolation is a relapse. */
  onTrial(): void {
    this.#trial = true;
  }

  /** Calls flow again. */
  returned(nowUs: number): void {
    this.#trial = false;
    this.#returnedUs = nowUs;
  }

  /** Nothing ever happened. */
  forget(): void {
    this.#trial = false;
    this.#baseUs = 0;
    this.#returnedUs = Number.NEGATIVE_INFINITY;
  }
}

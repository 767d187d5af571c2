import { booleanOf, integerIn, knownKeys, numberIn } from '../options.js';
import { type Random, systemRandom } from '../random.js';

/** When traffic comes back to a cluster that had nobody left. */
export interface ClusterRecoveryOptions {
  /** With so many working servers all traffic passes; with fewer, the share usable ÷ this. 1 to 1 000 000. */
  readonly minWorkingInstances: number;
  /** Recovery ends once the number of working servers has stood still for longer than this, in milliseconds, 1 to 86 400 000. */
  readonly holdMs: number;
  /** brpc's own: whole milliseconds, a count at most every 10 ms, chance by a draw. @default false */
  readonly strict?: boolean | undefined;
}

/** Lets traffic back in step with the working servers, after a time in which there was none. Told the time, holds no timer. */
export interface ClusterRecovery {
  readonly isRecovering: boolean;
  /** Nobody could be chosen: recovery begins, unless it is under way. */
  start(nowUs: number): void;
  /**
   * May one more call choose a server? True while not recovering.
   *
   * @param countUsable - working servers now; a ramping one may count as a part of one. Asked only while recovering.
   */
  admits(countUsable: () => number, nowUs: number): boolean;
}

/** All that moves in a strict recovery, in the words of its golden data. */
export interface StrictRecoveryState {
  readonly recovering: boolean;
  readonly lastUsable: number;
  readonly lastUsableChangeTimeMs: number;
  readonly usableCache: number;
  readonly usableCacheTimeMs: number;
}

const KNOWN = { minWorkingInstances: 0, holdMs: 0, strict: false };

/** The recovery of one cluster. Throws on unknown keys and bad values. */
export function createClusterRecovery(
  options: ClusterRecoveryOptions,
  random: Random = systemRandom,
): ClusterRecovery {
  knownKeys('clusterRecovery', options, KNOWN);
  const strict =
    options.strict !== undefined && booleanOf('clusterRecovery.strict', options.strict);
  return strict ? new StrictClusterRecovery(options, random) : new ProportionalRecovery(options);
}

function resolveRecoveryOptions(options: ClusterRecoveryOptions): { min: number; holdMs: number } {
  return {
    min: integerIn(
      'clusterRecovery.minWorkingInstances',
      options.minWorkingInstances,
      1,
      1_000_000,
    ),
    holdMs: numberIn('clusterRecovery.holdMs', options.holdMs, 1, 86_400_000),
  };
}

/** The default grade: the same share as brpc's, spread evenly instead of by chance. */
export class ProportionalRecovery implements ClusterRecovery {
  // set once
  readonly #min: number;
  readonly #holdUs: number;
  // moves while recovering
  #isRecovering = false;
  #usable = 0;
  #changedUs = 0;
  #credit = 0;

  constructor(options: ClusterRecoveryOptions) {
    const { min, holdMs } = resolveRecoveryOptions(options);
    this.#min = min;
    this.#holdUs = holdMs * 1000;
  }

  get isRecovering(): boolean {
    return this.#isRecovering;
  }

  start(nowUs: number): void {
    if (this.#isRecovering) return;
    this.#isRecovering = true;
    this.#usable = 0;
    this.#changedUs = nowUs;
    this.#credit = 0;
  }

  admits(countUsable: () => number, nowUs: number): boolean {
    if (!this.#isRecovering) return true;
    const usable = Math.max(0, countUsable() || 0); // NaN counts as nobody
    if (usable !== this.#usable) {
      this.#usable = usable;
      this.#changedUs = nowUs;
    } else if (usable > 0 && nowUs - this.#changedUs > this.#holdUs) {
      this.#isRecovering = false;
      return true;
    }
    if (usable >= this.#min) return true;
    this.#credit += usable / this.#min;
    if (this.#credit < 1) return false;
    this.#credit -= 1;
    return true;
  }
}

/** How old brpc's count of working servers may get. */
const RECOUNT_MS = 10;

/** brpc's recovery, as the golden data records it. */
export class StrictClusterRecovery implements ClusterRecovery {
  // set once
  readonly #min: number;
  readonly #holdMs: number;
  readonly #random: Random;
  // moves while recovering
  #recovering = false;
  #lastUsable = 0;
  #lastUsableChangeMs = 0;
  #usableCache = 0;
  #usableCacheMs = 0;

  constructor(options: ClusterRecoveryOptions, random: Random = systemRandom) {
    const { min, holdMs } = resolveRecoveryOptions(options);
    this.#min = min;
    this.#holdMs = holdMs;
    this.#random = random;
  }

  get isRecovering(): boolean {
    return this.#recovering;
  }

  start(): void {
    this.#recovering = true;
  }

  admits(countUsable: () => number, nowUs: number): boolean {
    if (!this.#recovering) return true;
    const nowMs = Math.trunc(nowUs / 1000); // cut
    if (this.#lastUsable !== 0 && nowMs - this.#lastUsableChangeMs > this.#holdMs) {
      this.#recovering = false;
      this.#lastUsable = 0;
      this.#lastUsableChangeMs = 0;
      return true;
    }
    if (nowMs - this.#usableCacheMs >= RECOUNT_MS) {
      this.#usableCache = countUsable();
      this.#usableCacheMs = nowMs;
    }
    if (this.#usableCache !== this.#lastUsable) {
      this.#lastUsable = this.#usableCache;
      this.#lastUsableChangeMs = nowMs;
    }
    return Math.floor(this.#random() * this.#min) < this.#usableCache;
  }

  /** Everything that moves, for conformance runs. */
  dump(): StrictRecoveryState {
    return {
      recovering: this.#recovering,
      lastUsable: this.#lastUsable,
      lastUsableChangeTimeMs: this.#lastUsableChangeMs,
      usableCache: this.#usableCache,
      usableCacheTimeMs: this.#usableCacheMs,
    };
  }
}

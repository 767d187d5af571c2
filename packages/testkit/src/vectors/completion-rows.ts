import { Difference, numbersOf } from './vector-file.js';

/** How a recorded completion ended: 0 success, 1 failure, 2 refused by a limiter. */
export type ErrorCode = 0 | 1 | 2;

/** What rows do to the thing under test. */
export interface CompletionTarget {
  /** The clock moves on. */
  wait(us: number): void;
  /** A call ends now. */
  complete(code: ErrorCode, latencyUs: number): void;
}

/** The small generator behind the noisy rows; one for a file, since its state carries on from row to row. */
export class RowNoise {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A whole number below `n`; steps once, also when there is nothing to choose. */
  below(n: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return n <= 1 ? 0 : (this.#state >>> 8) % n;
  }
}

/** The numbers of a row behind its letter; their count has to be right, so that nothing of a row goes unread. */
export function rowNumbers(
  where: string,
  row: readonly unknown[],
  count: number,
): readonly number[] {
  const numbers = numbersOf(where, row.slice(1));
  if (numbers.length !== count) throw new Difference(`${where}.length`, count + 1, row.length);
  return numbers;
}

/** Plays the rows that limiters and breakers share: `w`, `c`, `p`, `l`. False for any other row. */
export function playCompletionRow(
  where: string,
  row: readonly unknown[],
  noise: RowNoise,
  target: CompletionTarget,
): boolean {
  switch (row[0]) {
    case 'w': {
      const [us = 0] = rowNumbers(where, row, 1);
      target.wait(us);
      return true;
    }
    case 'c': {
      const [n = 0, us = 0, code, latencyUs = 0] = rowNumbers(where, row, 4);
      for (let i = 0; i < n; i++) {
        target.wait(us);
        target.complete(errorCode(where, code), latencyUs);
      }
      return true;
    }
    case 'p': {
      const [n = 0, us = 0] = rowNumbers(where, row.slice(0, 3), 2);
      if (row.length !== 4) throw new Difference(`${where}.length`, 4, row.length);
      const pattern = numbersOf(`${where}[3]`, row[3]);
      if (pattern.length === 0 || pattern.length % 2 !== 0) {
        throw new Difference(`${where}[3]`, 'pairs of code and latency', pattern);
      }
      for (let i = 0; i < n; i++) {
        const at = (2 * i) % pattern.length;
        target.wait(us);
        target.complete(errorCode(where, pattern[at]), pattern[at + 1] ?? 0);
      }
      return true;
    }
    case 'l': {
      const numbers = rowNumbers(where, row, 8);
      const [n = 0, usBase = 0, usSpread = 0, failures = 0, okBase = 0, okSpread = 0] = numbers;
      const [failBase = 0, failSpread = 0] = numbers.slice(6);
      for (let i = 0; i < n; i++) {
        const us = usBase + noise.below(usSpread + 1);
        const failed = noise.below(10_000) < failures;
        const latencyUs = failed
          ? failBase + noise.below(failSpread + 1)
          : okBase + noise.below(okSpread + 1);
        target.wait(us);
        target.complete(failed ? 1 : 0, latencyUs);
      }
      return true;
    }
    default:
      return false;
  }
}

export function errorCode(where: string, code: unknown): ErrorCode {
  if (code === 0 || code === 1 || code === 2) return code;
  throw new Difference(where, 'a code from 0 to 2', code);
}

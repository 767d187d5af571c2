import type { Clock } from '../clock.js';

/** Readings that may be answered from the one before. */
const MOST_REUSED = 64;

/**
 * A clock that is read anew once a millisecond: for those who ask a million times a second and can
 * take a time that is up to 1 ms old. `Date.now` costs a quarter of a monotonic reading, and is asked for
 * one thing only: whether it is still the same millisecond. Steps of the wall clock so do no harm, and
 * one that stands still holds time up for 64 readings at most.
 */
export function coarse(clock: Clock): Clock {
  let wallMs = Number.NaN;
  let nowUs = 0;
  let reused = 0;
  return {
    nowUs(): number {
      const ms = Date.now();
      if (ms === wallMs && ++reused < MOST_REUSED) return nowUs;
      wallMs = ms;
      reused = 0;
      nowUs = clock.nowUs();
      return nowUs;
    },
  };
}

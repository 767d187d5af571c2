import { admissionOf } from './arms.js';
import type { Scenario } from './scenario.js';
import { simulate } from './simulate.js';

/** A seed that no judged run uses. */
const TUNING_SEED = 7919;
/** The tuned part of the first window is no longer than this. */
const LONGEST_S = 30;

/**
 * The fixed limit that a patient person would find on the first measured window: most goodput, and of equals the one with
 * the lower p99. Powers of two first, then steps around the best.
 */
export function tuneFixed(scenario: Scenario): number {
  const [fromS, toS] = scenario.measureS[0] as readonly [number, number];
  const endS = Math.min(toS, fromS + Math.max(LONGEST_S, fromS / 4));
  const first: Scenario = { ...scenario, durationS: endS, measureS: [[fromS, endS]], expect: [] };
  const deadline = typeof scenario.deadlineMs === 'number' ? scenario.deadlineMs : 1000;
  const score = (fixed: number): number => {
    const { windows } = simulate(
      first,
      admissionOf({ arm: 'best fixed', fixed }, first),
      TUNING_SEED,
    );
    const window = windows[0] as (typeof windows)[number];
    return window.goodput - (0.02 * window.p99Ms) / deadline;
  };
  let best = 1;
  let most = score(1);
  const tryOut = (fixed: number): void => {
    if (fixed < 1) return;
    const reached = score(fixed);
    if (reached > most) [best, most] = [fixed, reached];
  };
  for (let fixed = 2; fixed <= 1024; fixed *= 2) tryOut(fixed);
  const power = best;
  for (const factor of [0.6, 0.72, 0.85, 1.15, 1.32, 1.55, 1.75]) {
    const fixed = Math.round(power * factor);
    if (fixed !== power) tryOut(fixed);
  }
  return best;
}

import type { Random } from '@elimit/core';
import { OverTime, type OverTimeSpec } from './over-time.js';

/** How long a service takes. All values in milliseconds. */
export type DistributionSpec =
  | { readonly dist: 'fixed'; readonly mean: OverTimeSpec }
  | { readonly dist: 'exp'; readonly mean: number }
  | { readonly dist: 'lognormal'; readonly mean: number; readonly cv: number }
  | {
      readonly dist: 'bimodal';
      readonly fast: number;
      readonly slow: number;
      readonly share: number;
    }
  | { readonly dist: 'pareto'; readonly min: number; readonly alpha: number; readonly max: number };

/** Draws one service time, in microseconds, for a service that begins at `nowUs`. */
export type Draw = (nowUs: number) => number;

/** The mean of a distribution whose mean does not change, in microseconds. */
export function meanUs(spec: DistributionSpec, atS = 0): number {
  switch (spec.dist) {
    case 'fixed':
      return 1000 * new OverTime(spec.mean).at(atS);
    case 'exp':
    case 'lognormal':
      return 1000 * spec.mean;
    case 'bimodal':
      return 1000 * (spec.fast * (1 - spec.share) + spec.slow * spec.share);
    case 'pareto': {
      const { min, alpha, max } = spec;
      // E[min(x, max)] = min + ∫ (min/x)^alpha dx
      return 1000 * (min + (min / (alpha - 1)) * (1 - (min / max) ** (alpha - 1)));
    }
  }
}

export function drawFrom(spec: DistributionSpec, random: Random): Draw {
  switch (spec.dist) {
    case 'fixed': {
      const mean = new OverTime(spec.mean);
      if (mean.isConstant) {
        const us = mean.at(0) * 1000;
        return () => us;
      }
      return (nowUs) => mean.at(nowUs / 1e6) * 1000;
    }
    case 'exp': {
      const us = spec.mean * 1000;
      return () => -us * Math.log(1 - random());
    }
    case 'lognormal': {
      const variance = Math.log(1 + spec.cv * spec.cv);
      const sigma = Math.sqrt(variance);
      const mu = Math.log(spec.mean * 1000) - variance / 2;
      return () => Math.exp(mu + sigma * normal(random));
    }
    case 'bimodal': {
      const fast = spec.fast * 1000;
      const slow = spec.slow * 1000;
      const { share } = spec;
      return () => (random() < share ? slow : fast);
    }
    case 'pareto': {
      const power = -1 / spec.alpha;
      const min = spec.min * 1000;
      const max = spec.max * 1000;
      return () => Math.min(max, min * (1 - random()) ** power);
    }
  }
}

/** Box and Muller; the second of the pair is let go. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

import { functionOf, oneOf, type Random } from '@elimit/core';
import type { Balancer } from './balancer.js';
import { LeastLoadedBalancer } from './least-loaded.js';
import { RandomBalancer } from './random.js';
import { RoundRobinBalancer } from './round-robin.js';
import { WeightedBalancer } from './weighted.js';

/** A balancer that comes with the package. */
export type BalancerName = 'roundRobin' | 'random' | 'weighted' | 'leastLoaded';

const BUILT_IN = {
  roundRobin: (random: Random) => new RoundRobinBalancer(random),
  random: (random: Random) => new RandomBalancer(random),
  weighted: (random: Random) => new WeightedBalancer(random),
  leastLoaded: (random: Random) => new LeastLoadedBalancer(random),
} satisfies Record<BalancerName, (random: Random) => Balancer>;

/** A balancer by its name, or one's own. */
export type BalancerValue = BalancerName | Balancer;

/** The balancers that come with the package. */
export const BALANCER_NAMES = Object.keys(BUILT_IN) as readonly BalancerName[];

/** The balancer for a value; throws on unknown names and on objects without `pick`. */
export function createBalancer(of: string, value: BalancerValue, random: Random): Balancer {
  if (typeof value === 'object' && (value as Balancer | null) !== null) {
    functionOf(`${of}.pick`, (value as { pick: unknown }).pick);
    return value;
  }
  return BUILT_IN[oneOf(of, value, BALANCER_NAMES)](random);
}

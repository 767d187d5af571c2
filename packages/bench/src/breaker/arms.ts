import { CircuitBreaker, type Clock, createBreakerCluster, type Random } from '@elimit/core';
import {
  ConsecutiveBreaker,
  circuitBreaker,
  handleAll,
  type IBreaker,
  SamplingBreaker,
} from 'cockatiel';
import Opossum from 'opossum';

/** A breaker in front of one node. */
export interface NodeBreaker {
  /** Runs `fn` or rejects without calling it. */
  execute(fn: () => Promise<void>): Promise<void>;
  end(): void;
}

/** One of the breakers compared. */
export interface Arm {
  readonly name: string;
  readonly settings: string;
  /** Begins a service; the function makes the breaker of one node more. */
  start(clock: Clock, random: Random): (onOpen: () => void) => NodeBreaker;
}

function elimit(name: string, settings: string, isCluster: boolean): Arm {
  return {
    name,
    settings,
    start(clock, random) {
      const cluster = isCluster ? createBreakerCluster() : undefined;
      return (onOpen) => {
        const breaker = new CircuitBreaker({ cluster, clock, random, registry: false });
        breaker.on('open', onOpen);
        return { execute: (fn) => breaker.execute(fn), end() {} };
      };
    },
  };
}

function opossum(name: string, settings: string, options: object): Arm {
  return {
    name,
    settings,
    start: () => (onOpen) => {
      const breaker = new Opossum((fn: () => Promise<void>) => fn(), {
        timeout: false,
        ...options,
      });
      breaker.on('open', onOpen);
      return { execute: (fn) => breaker.fire(fn), end: () => breaker.shutdown() };
    },
  };
}

function cockatiel(
  name: string,
  settings: string,
  halfOpenAfter: number,
  make: () => IBreaker,
): Arm {
  return {
    name,
    settings,
    start: () => (onOpen) => {
      const policy = circuitBreaker(handleAll, { halfOpenAfter, breaker: make() });
      policy.onBreak(onOpen);
      return { execute: (fn) => policy.execute(fn), end() {} };
    },
  };
}

/** The peers twice: as their own documents show them, and set to what our defaults tolerate. */
export const ARMS: readonly Arm[] = [
  elimit('elimit', 'defaults, the nodes of a service in one cluster', true),
  opossum('opossum', 'defaults: 50 % of 10 s, reset after 30 s', {}),
  cockatiel(
    'cockatiel',
    'as in its README: ConsecutiveBreaker(5), half-open after 10 s',
    10_000,
    () => new ConsecutiveBreaker(5),
  ),
  elimit('elimit apart', 'defaults, no cluster: each breaker knows its own node only', false),
  opossum('opossum tuned', '10 % of 10 s, volume 20, reset after 1 s', {
    errorThresholdPercentage: 10,
    volumeThreshold: 20,
    resetTimeout: 1000,
  }),
  cockatiel(
    'cockatiel tuned',
    'SamplingBreaker of 10 % in 10 s, 2 calls/s, half-open after 1 s',
    1000,
    () => new SamplingBreaker({ threshold: 0.1, duration: 10_000, minimumRps: 2 }),
  ),
];

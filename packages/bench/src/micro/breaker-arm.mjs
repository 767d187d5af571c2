// One arm of call-arms.ts: `node breaker-arm.mjs NAME` gives the nanoseconds per call. Plain JavaScript, so
// that plain node runs it on the built packages, with no transform in between.
import { CircuitBreaker } from '@elimit/core';
import {
  ConsecutiveBreaker,
  CountBreaker,
  circuitBreaker,
  handleAll,
  SamplingBreaker,
} from 'cockatiel';
import Opossum from 'opossum';
import { finish, steadyNs } from './cpu-time.mjs';

const registry = false;
const work = () => Promise.resolve(1);
const HALF_OPEN = { halfOpenAfter: 10_000 };
const cockatiel = (breaker) => {
  const policy = circuitBreaker(handleAll, { ...HALF_OPEN, breaker });
  return () => policy.execute(work);
};

const arms = {
  bare: () => () => work(),
  elimit: () => {
    const breaker = new CircuitBreaker({ registry });
    return () => breaker.execute(work);
  },
  'elimit strict': () => {
    const breaker = new CircuitBreaker({ strict: true, registry });
    return () => breaker.execute(work);
  },
  'elimit, no clock': () => {
    let us = 0;
    const breaker = new CircuitBreaker({ clock: { nowUs: () => us++ }, registry });
    return () => breaker.execute(work);
  },
  'cockatiel consecutive': () => cockatiel(new ConsecutiveBreaker(5)),
  'cockatiel sampling': () => cockatiel(new SamplingBreaker({ threshold: 0.2, duration: 30_000 })),
  'cockatiel count': () => cockatiel(new CountBreaker({ threshold: 0.2, size: 100 })),
  opossum: () => {
    const breaker = new Opossum(work, { timeout: false });
    return () => breaker.fire();
  },
};

const call = arms[process.argv[2]]();
finish({ ns: await steadyNs(call, 100_000, { awaits: true }) });

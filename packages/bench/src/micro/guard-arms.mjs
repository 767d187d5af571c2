// What guard-arm.mjs and garbage-arm.mjs measure. Plain JavaScript, so that plain node runs it on the built packages,
// with no transform in between.
import { createGuard, systemClock } from '@elimit/core';
import { bulkhead } from 'cockatiel';

const registry = false;
const work = () => Promise.resolve(1);
/** With a floor: calls of a microsecond beside eight that never end are no load to find a limit for. */
const AUTO = { type: 'auto', minConcurrency: 20 };

/** Kept: when the last permit is collected, V8 forgets what permits look like, and all code that was compiled with it. */
const held = [];

/** Holds `n` slots for the length of the run: a guard is rarely empty. */
function busy(guard, n = 8) {
  for (let i = 0; i < n; i++) held.push(guard.tryAcquire());
  return guard;
}

const around = (guard) => async () => {
  const entry = guard.tryAcquire();
  if (!entry.admitted) throw new Error('refused');
  await work();
  entry.release('success');
};
const alone = (guard) => () => {
  const entry = guard.tryAcquire();
  if (entry.admitted) entry.release('success');
};

/** Each gives the function that makes one call: `call`, to be awaited, or `plain`. */
export const arms = {
  clock: () => ({ plain: () => systemClock.nowUs() }),
  'clock: performance.now': () => {
    const now = performance.now.bind(performance);
    return { plain: () => Math.trunc(now() * 1000) };
  },
  'clock: Date.now': () => ({ plain: () => Date.now() }),
  'clock: hrtime.bigint': () => {
    const { hrtime } = process;
    return { plain: () => Number(hrtime.bigint()) };
  },
  // the bulkhead runs an async call, and has no other form
  'bare async call': () => ({
    call: async () => {
      await work();
    },
  }),
  bulkhead: () => {
    const policy = bulkhead(100, 0);
    for (let i = 0; i < 8; i++) void policy.execute(() => new Promise(() => {}));
    return { call: () => policy.execute(work) };
  },
  'guard auto, around': () => ({ call: around(busy(createGuard({ limit: AUTO, registry }))) }),
  'guard auto, execute': () => {
    const guard = busy(createGuard({ limit: AUTO, registry }));
    return { call: () => guard.execute(work) };
  },
  'guard constant': () => ({ plain: alone(busy(createGuard({ limit: 100, registry }))) }),
  'guard auto': () => ({ plain: alone(busy(createGuard({ limit: AUTO, registry }))) }),
  // as an adapter asks, who has stamped the request before
  'guard auto, with options': () => {
    const guard = busy(createGuard({ limit: AUTO, registry }));
    const options = { arrivedUs: 0, timeoutMs: 500, priority: 'default' };
    let calls = 0;
    return {
      plain: () => {
        if (calls++ % 1000 === 0) options.arrivedUs = systemClock.nowUs();
        const entry = guard.tryAcquire(options);
        if (entry.admitted) entry.release('success', 0);
      },
    };
  },
  'guard auto, no clock': () => {
    let us = 0;
    const clock = { nowUs: () => us++ };
    return { plain: alone(busy(createGuard({ limit: AUTO, clock, registry }))) };
  },
  refusal: () => {
    const guard = busy(createGuard({ limit: 8, registry }));
    return { plain: () => guard.tryAcquire() };
  },
};

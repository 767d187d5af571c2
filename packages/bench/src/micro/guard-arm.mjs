// One arm of call-arms.ts: `node guard-arm.mjs NAME` prints { ns, bytes } per call as JSON. Plain JavaScript, so
// that plain node runs it on the built packages, with no transform in between.
import { createGuard, systemClock } from '@elimit/core';
import { bulkhead } from 'cockatiel';

const registry = false;
const work = () => Promise.resolve(1);
/** With a floor: calls of a microsecond beside eight that never end are no load to find a limit for. */
const AUTO = { type: 'auto', minConcurrency: 20 };

/** Holds `n` slots for the length of the run: a guard is rarely empty. */
function busy(guard, n = 8) {
  for (let i = 0; i < n; i++) guard.tryAcquire();
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

const arms = {
  bare: () => ({ call: () => work() }),
  clock: () => ({ plain: () => systemClock.nowUs() }),
  bulkhead: () => {
    const policy = bulkhead(100, 0);
    for (let i = 0; i < 8; i++) void policy.execute(() => new Promise(() => {}));
    return { call: () => policy.execute(work) };
  },
  'guard constant, around': () => ({ call: around(busy(createGuard({ limit: 100, registry }))) }),
  'guard auto, around': () => ({ call: around(busy(createGuard({ limit: AUTO, registry }))) }),
  'guard auto, execute': () => {
    const guard = busy(createGuard({ limit: AUTO, registry }));
    return { call: () => guard.execute(work) };
  },
  'guard constant': () => ({ plain: alone(busy(createGuard({ limit: 100, registry }))) }),
  'guard auto': () => ({ plain: alone(busy(createGuard({ limit: AUTO, registry }))) }),
  'guard auto, arrivedUs': () => {
    const guard = busy(createGuard({ limit: AUTO, registry }));
    const options = { arrivedUs: Math.trunc(performance.now() * 1000) };
    return {
      plain: () => {
        const entry = guard.tryAcquire(options);
        if (entry.admitted) entry.release('success');
      },
    };
  },
  'guard constant, no clock': () => {
    let us = 0;
    const clock = { nowUs: () => us++ };
    return { plain: alone(busy(createGuard({ limit: 100, clock, registry }))) };
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

const { call, plain } = arms[process.argv[2]]();
const CALLS = 200_000;

async function round(calls) {
  // processor time, not the clock on the wall: whoever shares the machine is left out
  const from = process.cpuUsage();
  if (plain !== undefined) for (let i = 0; i < calls; i++) plain();
  else for (let i = 0; i < calls; i++) await call();
  const { user, system } = process.cpuUsage(from);
  return ((user + system) * 1000) / calls;
}

for (let i = 0; i < 5; i++) await round(CALLS);
const rounds = [];
for (let i = 0; i < 15; i++) rounds.push(await round(CALLS));
rounds.sort((a, b) => a - b);

globalThis.gc();
const before = process.memoryUsage().heapUsed;
const COUNTED = 50_000; // fits the young generation that call-arms.ts asks for: nothing is collected meanwhile
await round(COUNTED);
const bytes = (process.memoryUsage().heapUsed - before) / COUNTED;
console.log(JSON.stringify({ ns: rounds[Math.floor(rounds.length / 4)], bytes }));

// One arm of call-arms.ts: `node guard-arm.mjs NAME` prints { ns, bytes, permitBytes } as JSON: time and garbage per
// call, and what a permit that is held takes. Plain JavaScript, so that plain node runs it on the built packages, with
// no transform in between.
import { createGuard, systemClock } from '@elimit/core';
import { bulkhead } from 'cockatiel';
import { nsPerCall, steadyNs } from './cpu-time.mjs';

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
  'guard auto, arrivedUs': () => {
    const guard = busy(createGuard({ limit: AUTO, registry }));
    // as an adapter has it, who has stamped the request before
    const options = { arrivedUs: 0 };
    let calls = 0;
    return {
      plain: () => {
        if (calls++ % 1000 === 0) options.arrivedUs = systemClock.nowUs();
        const entry = guard.tryAcquire(options);
        if (entry.admitted) entry.release('success');
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

const { call, plain } = arms[process.argv[2]]();
const each = plain ?? call;
const awaits = plain === undefined;
const heapUsed = () => process.memoryUsage().heapUsed;

const ns = await steadyNs(each, awaits ? 100_000 : 300_000, { awaits });

globalThis.gc();
const COUNTED = 50_000; // fits the young generation that call-arms.ts asks for: nothing is collected meanwhile
const before = heapUsed();
await nsPerCall(each, COUNTED, { awaits });
const bytes = (heapUsed() - before) / COUNTED;

console.log(JSON.stringify({ ns, bytes, permitBytes: permitBytes() }));

function permitBytes() {
  const guard = createGuard({ limit: COUNTED, registry });
  const held = Array.from({ length: COUNTED }, () => undefined);
  globalThis.gc();
  const empty = heapUsed();
  for (let i = 0; i < COUNTED; i++) held[i] = guard.tryAcquire();
  globalThis.gc();
  const taken = (heapUsed() - empty) / held.length;
  for (const permit of held) permit.release('success');
  return taken;
}

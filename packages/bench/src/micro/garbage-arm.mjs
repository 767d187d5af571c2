// One arm of call-arms.ts: `node --expose-gc garbage-arm.mjs NAME` gives { bytes, permitBytes }: the garbage of a call,
// and what a permit that is held takes, its time of arrival included.
import { createGuard } from '@elimit/core';
import { finish, nsPerCall } from './cpu-time.mjs';
import { arms } from './guard-arms.mjs';

const COUNTED = 50_000; // fits the young generation that call-arms.ts asks for: nothing is collected meanwhile
const COUNTS = 7;

const { call, plain } = arms[process.argv[2]]();
const each = plain ?? call;
const awaits = plain === undefined;
const used = () => {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

await nsPerCall(each, 500_000, { awaits }); // what V8 compiles leaves garbage, too
const counts = [];
for (let i = 0; i < COUNTS; i++) {
  globalThis.gc();
  const before = used();
  await nsPerCall(each, COUNTED, { awaits });
  counts.push((used() - before) / COUNTED);
}
const bytes = counts.toSorted((a, b) => a - b)[COUNTS >> 1];
finish({ bytes, permitBytes: permitBytes() });

function permitBytes() {
  const guard = createGuard({ limit: COUNTED, registry: false });
  const held = Array.from({ length: COUNTED }, () => undefined);
  globalThis.gc();
  const empty = used();
  for (let i = 0; i < COUNTED; i++) held[i] = guard.tryAcquire();
  globalThis.gc();
  const taken = (used() - empty) / held.length;
  for (const permit of held) permit.release('success');
  return taken;
}

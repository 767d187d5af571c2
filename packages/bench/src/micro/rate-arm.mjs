// One arm of rate.ts: `node rate-arm.mjs NAME` prints { ns, nsManyHits, nsManyKeys, bytesPerKey } as JSON. Plain
// JavaScript, so that plain node runs it on the built packages, with no transform in between.
import { createRateLimiter } from '@elimit/core';
import { ThrottlerStorageService } from '@nestjs/throttler';
import { MemoryStore } from 'express-rate-limit';
import { RateLimiterMemory } from 'rate-limiter-flexible';

const WINDOW_MS = 60_000;
const MANY = 1e9;

/** Each makes one keyed limiter whose limit is not reached, and gives the function that counts one call of a key. */
const arms = {
  elimit: () => {
    const limiter = createRateLimiter({
      rate: 1e6,
      burst: 1e6,
      maxKeys: 1_000_000,
      registry: false,
    });
    return (key) => limiter.tryTake(1, key);
  },
  'elimit, check': () => {
    const limiter = createRateLimiter({
      rate: 1e6,
      burst: 1e6,
      maxKeys: 1_000_000,
      registry: false,
    });
    return (key) => limiter.check(1, key);
  },
  'elimit, refused': () => {
    const limiter = createRateLimiter({ limit: 0, maxKeys: 1_000_000, registry: false });
    return (key) => limiter.tryTake(1, key);
  },
  'elimit, warm-up': () => {
    const options = { rate: 1e6, burst: 1e6, warmUpMs: 1000, maxKeys: 1_000_000, registry: false };
    const limiter = createRateLimiter(options);
    return (key) => limiter.tryTake(1, key);
  },
  'rate-limiter-flexible': () => {
    const limiter = new RateLimiterMemory({ points: MANY, duration: WINDOW_MS / 1000 });
    return (key) => limiter.consume(key);
  },
  '@nestjs/throttler': () => {
    const storage = new ThrottlerStorageService();
    return (key) => storage.increment(key, WINDOW_MS, MANY, 0, 'default');
  },
  'express-rate-limit': () => {
    const store = new MemoryStore();
    store.init({ windowMs: WINDOW_MS });
    return (key) => store.increment(key);
  },
};

const name = process.argv[2];
const make = arms[name];
const isSync = name.startsWith('elimit');

/** Processor time per call in ns: whoever shares the machine is left out. */
async function measure(call, keys, calls) {
  const from = process.cpuUsage();
  if (isSync) for (let i = 0; i < calls; i++) call(keys[i % keys.length]);
  else for (let i = 0; i < calls; i++) await call(keys[i % keys.length]);
  const { user, system } = process.cpuUsage(from);
  return ((user + system) * 1000) / calls;
}

async function best(call, keys, calls, rounds) {
  const all = [];
  for (let i = 0; i < rounds; i++) all.push(await measure(call, keys, calls));
  all.sort((a, b) => a - b);
  return all[Math.floor(rounds / 4)];
}

/** Keys as a server sees them: made at run time, each a string of its own. */
const keysOf = (count) =>
  Array.from({ length: count }, (_, i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`);

// @nestjs/throttler gets dearer with every hit: fewer calls, so that the run ends
const isSlow = name === '@nestjs/throttler';
const calls = isSlow ? 2000 : 100_000;

const few = keysOf(100);
const call = make();
await best(call, few, calls, 5);
const ns = await best(make(), few, calls, 9);

// the same hundred keys after 200 hits each (for a sliding log), and 2000 each
const hit = make();
await measure(hit, few, isSlow ? 20_000 : 200_000);
const nsManyHits = await best(hit, few, calls, 9);

const many = keysOf(100_000);
const crowded = make();
globalThis.gc();
const before = process.memoryUsage();
await measure(crowded, many, many.length);
globalThis.gc();
const after = process.memoryUsage();
const used = (m) => m.heapUsed + m.external;
const bytesPerKey = (used(after) - used(before)) / many.length;
const nsManyKeys = await best(crowded, many, many.length, 2);

console.log(JSON.stringify({ ns, nsManyHits, nsManyKeys, bytesPerKey }));
process.exit(0);

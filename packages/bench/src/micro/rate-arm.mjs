// One arm of call-arms.ts: `node rate-arm.mjs NAME` gives { ns, manyHits, nsManyKeys, bytesPerKey }. Plain
// JavaScript, so that plain node runs it on the built packages, with no transform in between.
import { createRateLimiter, systemClock } from '@elimit/core';
import { ThrottlerStorageService } from '@nestjs/throttler';
import { MemoryStore, rateLimit } from 'express-rate-limit';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { finish, nsPerCall, steadyNs } from './cpu-time.mjs';

const WINDOW_MS = 60_000;
const MANY = 1e9;
const PAIRS = 15;

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
  'rate-limiter-flexible': () => {
    const limiter = new RateLimiterMemory({ points: MANY, duration: WINDOW_MS / 1000 });
    return (key) => limiter.consume(key);
  },
  '@nestjs/throttler': () => {
    const storage = new ThrottlerStorageService();
    return (key) => storage.increment(key, WINDOW_MS, MANY, 0, 'default');
  },
  // it is asked through its middleware only: here without a server, for a request that is an address and no more
  'express-rate-limit': () => {
    const middleware = rateLimit({
      limit: MANY,
      windowMs: WINDOW_MS,
      standardHeaders: false,
      legacyHeaders: false,
      validate: false,
      keyGenerator: (req) => req.ip,
    });
    const [res, next] = [{}, () => undefined];
    return (key) => middleware({ ip: key }, res, next);
  },
  // it counts, and leaves to the middleware what that means
  'express-rate-limit, its store': () => {
    const store = new MemoryStore();
    store.init({ windowMs: WINDOW_MS });
    return (key) => store.increment(key);
  },
  // what any limiter by key pays: finding the key, and knowing the time
  'look-up and clock': () => {
    const seen = new Map();
    return (key) => {
      const at = seen.get(key);
      const nowUs = systemClock.nowUs();
      if (at === undefined) seen.set(key, { nowUs });
      else at.nowUs = nowUs;
    };
  },
};

const name = process.argv[2];
const make = arms[name];
// figures of one process are compared with each other: they are taken without a break
const turns = false;
const awaits = !(name.startsWith('elimit') || name === 'look-up and clock');

/** `call`, for each of the keys in turn. */
const over = (keys, call) => (i) => call(keys[i % keys.length]);

/** Keys as a server sees them: made at run time, each a string of its own. */
const keysOf = (count) =>
  Array.from({ length: count }, (_, i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`);

// @nestjs/throttler gets dearer with every hit: fewer calls, so that the run ends
const isSlow = name === '@nestjs/throttler';
const calls = isSlow ? 2000 : 50_000;

const few = keysOf(100);
const ns = await steadyNs(over(few, make()), calls, { awaits, turns });

// a hundred keys that were hit 2000 times each (200 for a sliding log), beside a hundred new ones: a spell in which the
// machine is slow meets both
const hit = over(few, make());
await nsPerCall(hit, isSlow ? 20_000 : 200_000, { awaits });
const ratios = [];
for (let i = 0; i < PAIRS; i++) {
  const fresh = await nsPerCall(over(few, make()), calls, { awaits });
  ratios.push((await nsPerCall(hit, calls, { awaits })) / fresh);
}
const manyHits = ratios.toSorted((a, b) => a - b)[PAIRS >> 1];

const many = keysOf(200_000);
const crowded = over(many, make());
globalThis.gc();
const before = process.memoryUsage();
await nsPerCall(crowded, many.length, { awaits });
globalThis.gc();
const after = process.memoryUsage();
const used = (m) => m.heapUsed + m.external;
const bytesPerKey = (used(after) - used(before)) / many.length;
const nsManyKeys = await steadyNs(crowded, many.length, { awaits, turns, warmUp: 0, rounds: 2 });

finish({ ns, manyHits, nsManyKeys, bytesPerKey });

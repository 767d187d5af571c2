// One process of redis.ts: `node redis-arm.mjs ARM PORT RATE PER_SECOND SECONDS`. Waits for a line on stdin, offers
// calls by the clock whether or not answers come, and prints what was granted, refused and how long answers took.
import { createRateLimiter } from '@elimit/core';
import { redisStore } from '@elimit/redis';
import { Redis } from 'ioredis';
import { RedisStore } from 'rate-limit-redis';
import { RateLimiterRedis } from 'rate-limiter-flexible';

const [arm, ...numbers] = process.argv.slice(2);
const [port, rate, perSecond, seconds] = numbers.map(Number);
const client = new Redis(port);
await client.ping();
const onlyLocal = { storeTimeoutMs: 5000, registry: false };

const arms = {
  elimit: () => limiterOn(redisStore(client)),
  'elimit without leases': () => limiterOn(redisStore(client, { lease: false })),
  'rate-limiter-flexible': () => {
    const limiter = new RateLimiterRedis({ storeClient: client, points: rate, duration: 1 });
    const ask = async () => {
      try {
        await limiter.consume('k');
        return true;
      } catch (refusal) {
        if (refusal instanceof Error) throw refusal;
        return false;
      }
    };
    return { ask, close: () => undefined };
  },
  'rate-limit-redis': async () => {
    const store = new RedisStore({
      sendCommand: (command, ...args) => client.call(command, ...args),
    });
    await store.init({ windowMs: 1000 });
    return {
      ask: async () => (await store.increment('k')).totalHits <= rate,
      close: () => undefined,
    };
  },
};

function limiterOn(store) {
  const limiter = createRateLimiter({
    limit: rate,
    windowMs: 1000,
    name: 'bench',
    store,
    ...onlyLocal,
  });
  const ask = () => {
    const decision = limiter.check(1, 'k');
    return decision instanceof Promise ? decision.then((told) => told.granted) : decision.granted;
  };
  return { ask, close: () => limiter.close() };
}

const { ask, close } = await arms[arm]();
let offered = 0;
let granted = 0;
let firstMs = 0;
let lastMs = 0;
const tookUs = [];

async function call() {
  offered += 1;
  const from = process.hrtime.bigint();
  const isGranted = await ask();
  tookUs.push(Number(process.hrtime.bigint() - from) / 1000);
  if (!isGranted) return;
  granted += 1;
  const nowMs = Number(process.hrtime.bigint() / 1000n) / 1000;
  if (firstMs === 0) firstMs = nowMs;
  lastMs = nowMs;
}

const startMs = await new Promise((resolve) => {
  process.stdin.once('data', () => resolve(performance.now()));
  console.log('ready');
});
const cpu = process.cpuUsage();
await new Promise((resolve) => {
  const turn = () => {
    const elapsed = Math.min(seconds * 1000, performance.now() - startMs);
    while (offered < (perSecond * elapsed) / 1000) void call();
    if (elapsed < seconds * 1000) setTimeout(turn, 1);
    else setTimeout(resolve, 500);
  };
  turn();
});
const { user, system } = process.cpuUsage(cpu);
await close();
tookUs.sort((a, b) => a - b);
const at = (share) => tookUs[Math.floor(tookUs.length * share)];
console.log(
  JSON.stringify({
    offered,
    granted,
    firstMs,
    lastMs,
    p50Us: at(0.5),
    p99Us: at(0.99),
    cpuUs: (user + system) / offered,
  }),
);
process.exit(0);

// One process of several that share a quota: offers a load, tells what was granted and when.
import { createRateLimiter } from '@elimit/core';
import { redisStore } from '@elimit/redis';
import { Redis } from 'ioredis';

const [port, rate, burst, perSecond, forMs] = process.argv.slice(2).map(Number) as [
  number,
  number,
  number,
  number,
  number,
];
const client = new Redis(port);
// a test machine may be slow: here it is not about the bound on one check
const storeTimeoutMs = 5000;
const store = redisStore(client);
const limiter = createRateLimiter({ rate, burst, name: 'shared', store, storeTimeoutMs });
const micros = (): number => Number(process.hrtime.bigint() / 1000n);

let granted = 0;
let firstUs = 0;
let lastUs = 0;
let offered = 0;
async function offer(): Promise<void> {
  offered += 1;
  const askedUs = micros();
  const decision = await limiter.check(1, 'k');
  if (!decision.granted) return;
  granted += 1;
  if (firstUs === 0) firstUs = askedUs;
  lastUs = micros();
}

function run(startUs: number): void {
  const elapsedUs = micros() - startUs;
  while (offered < (perSecond * Math.min(elapsedUs, forMs * 1000)) / 1e6) void offer();
  if (elapsedUs < forMs * 1000) setTimeout(() => run(startUs), 1);
  else setTimeout(() => void end(), 200);
}

async function end(): Promise<void> {
  const { mode } = limiter.snapshot();
  await limiter.close();
  process.stdout.write(`${JSON.stringify({ granted, firstUs, lastUs, offered, mode })}\n`);
  client.disconnect();
  process.stdin.destroy();
}

await client.ping();
process.stdin.once('data', () => run(micros()));
process.stdout.write('ready\n');

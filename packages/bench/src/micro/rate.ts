/**
 * What a rate limiter in memory costs per call and per key, against its peers. Needs the built core:
 *
 *   npm run build && node --import tsx packages/bench/src/micro/rate.ts [--json]
 *
 * One process per arm and round, arms in turn, so that no arm sees another's types and noise falls on all alike.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROUNDS = Number(process.env.ROUNDS ?? 3);
const ARMS = [
  'elimit',
  'elimit, check',
  'elimit, refused',
  'elimit, warm-up',
  'rate-limiter-flexible',
  '@nestjs/throttler',
  'express-rate-limit',
] as const;
const PEERS = ['rate-limiter-flexible', '@nestjs/throttler', 'express-rate-limit'] as const;
type Arm = (typeof ARMS)[number];

interface Cost {
  /** A hundred keys; lower quartile of the rounds of a process, then the least of the processes. */
  ns: number;
  /** The same keys once each has been hit many times. */
  nsManyHits: number;
  /** 100 000 keys in turn. */
  nsManyKeys: number;
  bytesPerKey: number;
}

const arm = fileURLToPath(new URL('./rate-arm.mjs', import.meta.url));
const costs = new Map<Arm, Cost>();
for (let round = 0; round < ROUNDS; round++) {
  for (const name of ARMS) {
    const out = execFileSync(process.execPath, ['--expose-gc', arm, name], { encoding: 'utf8' });
    const cost = JSON.parse(out) as Cost;
    const before = costs.get(name);
    if (before === undefined || cost.ns < before.ns) costs.set(name, cost);
  }
}

const of = (name: Arm): Cost => costs.get(name) as Cost;
const least = (figure: keyof Cost): number => Math.min(...PEERS.map((peer) => of(peer)[figure]));
const ratios = {
  'by key, ÷ the best peer (must hold 0.5)': of('elimit').ns / least('ns'),
  'with what is left and when to come back, ÷ the best peer': of('elimit, check').ns / least('ns'),
  'after many hits, ÷ before': of('elimit').nsManyHits / of('elimit').ns,
  'with 100 000 keys, ÷ the best peer with as many': of('elimit').nsManyKeys / least('nsManyKeys'),
  'bytes per key (must hold 200)': of('elimit').bytesPerKey,
};

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ costs: Object.fromEntries(costs), ratios }, null, 2));
} else {
  console.log(`${''.padEnd(24)}       ns  many hits  many keys  bytes/key`);
  for (const [name, { ns, nsManyHits, nsManyKeys, bytesPerKey }] of costs) {
    const cells = [ns, nsManyHits, nsManyKeys, bytesPerKey].map((n) => n.toFixed(0).padStart(10));
    console.log(`${name.padEnd(24)}${cells.join(' ')}`);
  }
  for (const [name, ratio] of Object.entries(ratios)) console.log(`${name}: ${ratio.toFixed(2)}`);
}

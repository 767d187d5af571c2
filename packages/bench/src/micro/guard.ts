/**
 * What a guard costs per call, against cockatiel's bulkhead. Needs the built core:
 *
 *   npm run build && node --import tsx packages/bench/src/micro/guard.ts [--json]
 *
 * One process per arm and round, arms in turn, so that no arm sees another's types and noise falls on all alike.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROUNDS = 3;
const ARMS = [
  'bare',
  'clock',
  'bulkhead',
  'guard constant, around',
  'guard auto, around',
  'guard auto, execute',
  'guard constant',
  'guard auto',
  'guard auto, arrivedUs',
  'guard constant, no clock',
  'guard auto, no clock',
  'refusal',
] as const;
type Arm = (typeof ARMS)[number];

interface Cost {
  /** Lower quartile of the rounds of a process, then the least of the processes. */
  ns: number;
  bytes: number;
}

const arm = fileURLToPath(new URL('./guard-arm.mjs', import.meta.url));
const costs = new Map<Arm, Cost>();
for (let round = 0; round < ROUNDS; round++) {
  for (const name of ARMS) {
    const out = execFileSync(
      process.execPath,
      ['--expose-gc', '--max-semi-space-size=128', '--min-semi-space-size=128', arm, name],
      { encoding: 'utf8' },
    );
    const cost = JSON.parse(out) as Cost;
    const best = costs.get(name);
    if (best === undefined || cost.ns < best.ns) costs.set(name, cost);
  }
}

const nsOf = (name: Arm): number => (costs.get(name) as Cost).ns;
const ratios = {
  'tryAcquire + release, auto ÷ bulkhead': nsOf('guard auto') / nsOf('bulkhead'),
  'around an async call, auto ÷ bulkhead': nsOf('guard auto, around') / nsOf('bulkhead'),
  'execute, auto ÷ bulkhead': nsOf('guard auto, execute') / nsOf('bulkhead'),
};

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ costs: Object.fromEntries(costs), ratios }, null, 2));
} else {
  for (const [name, { ns, bytes }] of costs) {
    console.log(
      `${name.padEnd(28)} ${ns.toFixed(1).padStart(8)} ns ${bytes.toFixed(0).padStart(6)} bytes`,
    );
  }
  for (const [name, ratio] of Object.entries(ratios)) console.log(`${name}: ${ratio.toFixed(2)}`);
}

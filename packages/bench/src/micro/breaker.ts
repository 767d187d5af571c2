/**
 * What a breaker around an async call costs, against cockatiel's and opossum's. Needs the built core:
 *
 *   npm run build && node --import tsx packages/bench/src/micro/breaker.ts [--json]
 *
 * One process per arm and round, arms in turn, so that no arm sees another's types and noise falls on all alike.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const ROUNDS = 3;
const ARMS = [
  'bare',
  'elimit',
  'elimit strict',
  'elimit, no clock',
  'cockatiel consecutive',
  'cockatiel count',
  'cockatiel sampling',
  'opossum',
] as const;
type Arm = (typeof ARMS)[number];

const arm = fileURLToPath(new URL('./breaker-arm.mjs', import.meta.url));
const costs = new Map<Arm, number>();
for (let round = 0; round < ROUNDS; round++) {
  for (const name of ARMS) {
    const { ns } = JSON.parse(
      execFileSync(process.execPath, [arm, name], { encoding: 'utf8' }),
    ) as {
      ns: number;
    };
    costs.set(name, Math.min(ns, costs.get(name) ?? Number.POSITIVE_INFINITY));
  }
}

const nsOf = (name: Arm): number => costs.get(name) as number;
const ratios = {
  'elimit ÷ cockatiel consecutive': nsOf('elimit') / nsOf('cockatiel consecutive'),
  'elimit ÷ cockatiel count': nsOf('elimit') / nsOf('cockatiel count'),
  'elimit ÷ cockatiel sampling': nsOf('elimit') / nsOf('cockatiel sampling'),
  'elimit ÷ opossum': nsOf('elimit') / nsOf('opossum'),
};

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ ns: Object.fromEntries(costs), ratios }, null, 2));
} else {
  for (const [name, ns] of costs) console.log(`${name.padEnd(24)} ${ns.toFixed(1).padStart(8)} ns`);
  for (const [name, ratio] of Object.entries(ratios)) console.log(`${name}: ${ratio.toFixed(2)}`);
}

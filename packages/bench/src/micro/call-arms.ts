import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What an arm prints: `ns` per call, and whatever else its bench measures. */
export type CallCosts = Readonly<Record<string, number>>;

/** A bench of single calls: a file that measures one arm per process, named on its command line. */
export interface CallBench<Arm extends string> {
  readonly file: string;
  readonly flags: readonly string[];
  readonly arms: readonly Arm[];
}

export const GUARD = {
  file: 'guard-arm.mjs',
  // wide enough that nothing is collected while garbage is counted
  flags: ['--expose-gc', '--max-semi-space-size=128', '--min-semi-space-size=128'],
  arms: [
    'clock',
    'clock: performance.now',
    'clock: Date.now',
    'clock: hrtime.bigint',
    'bulkhead',
    'guard auto',
    'guard auto, arrivedUs',
    'guard auto, no clock',
    'guard constant',
    'guard auto, around',
    'guard auto, execute',
    'refusal',
  ],
} as const satisfies CallBench<string>;

export const BREAKER = {
  file: 'breaker-arm.mjs',
  flags: [],
  arms: [
    'bare',
    'elimit',
    'elimit strict',
    'elimit, no clock',
    'cockatiel consecutive',
    'cockatiel count',
    'cockatiel sampling',
    'opossum',
  ],
} as const satisfies CallBench<string>;

export const RATE = {
  file: 'rate-arm.mjs',
  flags: ['--expose-gc'],
  arms: [
    'elimit',
    'elimit, check',
    'look-up and clock',
    'rate-limiter-flexible',
    '@nestjs/throttler',
    'express-rate-limit',
    'express-rate-limit, its store',
  ],
} as const satisfies CallBench<string>;

/** Each arm once per round, arms in turn. One process per arm: no arm sees another's types. */
export function measureCalls<Arm extends string>(
  { file, flags, arms }: CallBench<Arm>,
  rounds: number,
): Record<Arm, CallCosts[]> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const costs = Object.fromEntries(arms.map((arm) => [arm, []])) as unknown as Record<
    Arm,
    CallCosts[]
  >;
  for (let round = 0; round < rounds; round++) {
    for (const arm of arms) {
      const printed = execFileSync(process.execPath, [...flags, path, arm], { encoding: 'utf8' });
      costs[arm].push(JSON.parse(printed) as CallCosts);
    }
  }
  return costs;
}

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** What an arm gives: `ns` per call, and whatever else its bench measures. */
export type CallCosts = Readonly<Record<string, number>>;

/** A bench of single calls: a file that measures one arm per process, named on its command line. */
export interface CallBench<Arm extends string> {
  readonly file: string;
  readonly flags: readonly string[];
  readonly arms: readonly Arm[];
}

export const GUARD = {
  file: 'guard-arm.mjs',
  flags: [],
  arms: [
    'clock',
    'clock: performance.now',
    'clock: Date.now',
    'clock: hrtime.bigint',
    'bare async call',
    'bulkhead',
    'guard auto',
    'guard auto, with options',
    'guard auto, no clock',
    'guard constant',
    'guard auto, around',
    'guard auto, execute',
    'refusal',
  ],
} as const satisfies CallBench<string>;

export const GARBAGE = {
  file: 'garbage-arm.mjs',
  // wide enough that nothing is collected while garbage is counted
  flags: ['--expose-gc', '--max-semi-space-size=128', '--min-semi-space-size=128'],
  arms: ['bulkhead', 'guard auto'],
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

/**
 * Each arm once per round. One process per arm, so that none sees another's types; within a round they take short turns,
 * one after the other, so that a spell in which the machine is slow meets all of them.
 */
export async function measureCalls<Arm extends string>(
  { file, flags, arms }: CallBench<Arm>,
  rounds: number,
): Promise<Record<Arm, CallCosts[]>> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const costs = Object.fromEntries(arms.map((arm) => [arm, []])) as unknown as Record<
    Arm,
    CallCosts[]
  >;
  for (let round = 0; round < rounds; round++) {
    const running = new Map<Arm, () => Promise<CallCosts | undefined>>();
    for (const arm of arms) {
      const turn = start(path, arm, flags);
      if (!ended(arm, await turn())) running.set(arm, turn);
    }
    while (running.size > 0) {
      for (const [arm, turn] of running) if (ended(arm, await turn())) running.delete(arm);
    }
  }
  return costs;

  function ended(arm: Arm, figures: CallCosts | undefined): boolean {
    if (figures !== undefined) costs[arm].push(figures);
    return figures !== undefined;
  }
}

/** An arm's process. Each turn lasts until the arm waits for the next one, or has its figures. */
function start(
  path: string,
  arm: string,
  flags: readonly string[],
): () => Promise<CallCosts | undefined> {
  const child = fork(path, [arm], { execArgv: [...flags] });
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`arm ${arm} ended with ${String(code)} and without figures`);
  });
  let isFirst = true;
  return async () => {
    if (!isFirst) child.send('go');
    isFirst = false;
    const [said] = (await Promise.race([once(child, 'message'), died])) as [
      'waiting' | { readonly figures: CallCosts },
    ];
    return said === 'waiting' ? undefined : said.figures;
  };
}

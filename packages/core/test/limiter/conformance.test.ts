import { limiterSuite } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  createLimiter,
  estimatesOf,
  type Limiter,
  type LimiterContext,
  type MaxConcurrency,
  type Outcome,
  parseMaxConcurrency,
} from '../../src/index.js';

/** Climbs by one for each success and halves on a failure: a limiter that a user might write. */
class StepLimiter implements Limiter {
  maxConcurrency = 4;
  admits(inflight: number): boolean {
    return inflight <= this.maxConcurrency;
  }
  started(): void {}
  refused(): void {}
  record(outcome: Outcome): void {
    if (outcome === 'ignored') return;
    const next = outcome === 'success' ? this.maxConcurrency + 1 : this.maxConcurrency >> 1;
    this.maxConcurrency = Math.max(1, Math.min(200, next));
  }
}

const build = (limit: MaxConcurrency) => (context: LimiterContext) =>
  createLimiter(parseMaxConcurrency(limit), context);

const ENGINES: { name: string; create: (context: LimiterContext) => Limiter; max: number }[] = [
  { name: '10', create: build(10), max: 10 },
  { name: 'unlimited', create: build('unlimited'), max: Number.POSITIVE_INFINITY },
  { name: 'auto', create: build('auto'), max: 10_000 },
  {
    name: 'auto, small',
    create: build({ type: 'auto', minConcurrency: 2, maxConcurrency: 30 }),
    max: 30,
  },
  { name: 'auto, strict', create: build({ type: 'auto', strict: true }), max: 2 ** 31 - 1 },
  {
    name: 'auto, strict, every sample taken',
    create: build({ type: 'auto', strict: true, minConcurrency: 1, samplingIntervalMs: 0 }),
    max: 2 ** 31 - 1,
  },
  {
    name: 'auto, as documented',
    create: build({ type: 'auto', strict: true, law: 'documented', maxConcurrency: 500 }),
    max: 500,
  },
  { name: 'timeout', create: build('timeout'), max: 100 },
  { name: 'timeout, its own', create: build({ timeoutMs: 50, maxConcurrency: 7 }), max: 7 },
  { name: 'timeout, strict', create: build({ type: 'timeout', strict: true }), max: 100 },
  { name: 'gradient', create: build('gradient'), max: 10_000 },
  { name: 'one of a user’s own', create: () => new StepLimiter(), max: 200 },
];

describe.each(ENGINES)('$name', ({ create, max }) => {
  limiterSuite(it, { create, max });

  const call = fc.record({
    us: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 1, max: 20_000 }),
      fc.integer({ min: 1, max: 3_600_000_000 }),
    ),
    times: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 300 })),
    what: fc.constantFrom<Outcome | 'refused'>(
      'success',
      'success',
      'success',
      'failure',
      'ignored',
      'abandoned',
      'refused',
    ),
    latencyUs: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 1, max: 1_000_000 }),
      fc.constant(Number.MAX_SAFE_INTEGER),
    ),
    inflight: fc.integer({ min: 1, max: 20_000 }),
  });

  it('keeps its limit whole and bounded, and never answers NaN, whatever happens', () => {
    fc.assert(
      fc.property(
        fc.array(call, { maxLength: 40 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (calls, chance) => {
          let nowUs = 5;
          const unsound: object[] = [];
          const limiter = create({ random: () => chance, nowUs });
          for (const { us, times, what, latencyUs, inflight } of calls) {
            for (let i = 0; i < times; i++) {
              nowUs += us;
              if (what === 'refused') limiter.refused(nowUs);
              else {
                limiter.started(nowUs, inflight);
                limiter.record(what, latencyUs, nowUs, inflight);
              }
            }
            const limit = limiter.maxConcurrency;
            const isWhole = Number.isInteger(limit) || limit === Number.POSITIVE_INFINITY;
            const estimates = Object.values(estimatesOf(limiter) ?? {}) as number[];
            // one comparison a step: 300 runs of a thousand calls each are many
            const isSound =
              isWhole &&
              limit >= 1 &&
              limit <= max &&
              limiter.admits(1, nowUs, Number.POSITIVE_INFINITY) &&
              (limit >= 2 ** 31 - 1 ||
                !limiter.admits(limit + 1, nowUs, Number.POSITIVE_INFINITY)) &&
              !estimates.some(Number.isNaN);
            if (!isSound) unsound.push({ limit, estimates });
          }
          expect(unsound).toEqual([]);
        },
      ),
      { numRuns: 300 },
    );
  });
});

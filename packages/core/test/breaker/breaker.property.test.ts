import { type BreakerState, ErrorCostBreaker, NO_TOKEN, type Outcome } from '@elimit/core';
import { seededRandom } from '@elimit/testkit';
import { expect, it } from '@jest/globals';
import fc from 'fast-check';

const MIN_MS = 50;
const MAX_MS = 800;
const WINDOW = 3;

type Step =
  | { do: 'wait'; us: number }
  | { do: 'ask' }
  | { do: 'end'; at: number; outcome: Outcome; latencyUs: number }
  | { do: 'isolate' | 'halfOpen' | 'forceOpen' | 'reset' };

const outcomes: Outcome[] = ['success', 'failure', 'ignored', 'abandoned'];
const latency = fc.oneof(
  fc.integer({ min: 0, max: 1_000_000 }),
  fc.constantFrom(-1, Number.NaN, Number.POSITIVE_INFINITY, 0, Number.MAX_SAFE_INTEGER),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      us: fc.integer({ min: 0, max: 500_000 }),
    }),
  },
  { weight: 8, arbitrary: fc.constant({ do: 'ask' as const }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('end' as const),
      at: fc.nat(),
      outcome: fc.constantFrom(...outcomes, 'failure' as const, 'failure' as const),
      latencyUs: latency,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Step>(
      { do: 'isolate' },
      { do: 'halfOpen' },
      { do: 'forceOpen' },
      { do: 'reset' },
    ),
  },
);

it('whatever happens: three states, no NaN, isolations in bounds, few trials, and no word from an earlier epoch', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.integer(), (steps, seed) => {
      let nowUs = 0;
      let changes = 0;
      const breaker = new ErrorCostBreaker(
        {
          minIsolationMs: MIN_MS,
          maxIsolationMs: MAX_MS,
          halfOpenWindowSize: WINDOW,
          minCalls: 1,
          trialTimeoutMs: 300,
        },
        { random: seededRandom(seed), onChange: () => (changes += 1) },
      );
      const inflight: { token: number; changes: number }[] = [];
      let trials: { token: number; changes: number }[] = [];
      for (const each of steps) {
        switch (each.do) {
          case 'wait':
            nowUs += each.us;
            break;
          case 'ask': {
            const token = breaker.tryCall(nowUs);
            if (token === NO_TOKEN) break;
            inflight.push({ token, changes });
            if (breaker.isTrial(token)) trials.push({ token, changes });
            break;
          }
          case 'end': {
            const [call] = inflight.splice(each.at % Math.max(1, inflight.length), 1);
            if (call === undefined) break;
            breaker.state(nowUs); // what time brings is not the call's doing
            const isLate = call.changes !== changes;
            const before = [changes, breaker.errorCostRatio, breaker.meanLatencyUs];
            breaker.record(each.outcome, each.latencyUs, nowUs, call.token);
            if (isLate)
              expect([changes, breaker.errorCostRatio, breaker.meanLatencyUs]).toEqual(before);
            trials = trials.filter(({ token }) => token !== call.token);
            break;
          }
          case 'isolate':
          case 'halfOpen':
            breaker[each.do](nowUs, 'test');
            break;
          case 'forceOpen':
          case 'reset':
            breaker[each.do](nowUs);
            break;
        }
        const state: BreakerState = breaker.state(nowUs);
        expect(['closed', 'open', 'halfOpen']).toContain(state);
        trials = trials.filter((call) => call.changes === changes); // the others were told off
        expect(trials.length).toBeLessThanOrEqual(WINDOW);
        for (const number of [
          breaker.errorCostRatio,
          breaker.meanLatencyUs,
          breaker.rampRatio(nowUs),
        ]) {
          expect(number).toBeGreaterThanOrEqual(0); // NaN fails
          expect(number).toBeLessThan(Number.POSITIVE_INFINITY);
        }
        expect(breaker.rampRatio(nowUs)).toBeLessThanOrEqual(1);
        if (breaker.opened > 0) {
          expect(breaker.isolationUs).toBeGreaterThanOrEqual(MIN_MS * 1000);
          expect(breaker.isolationUs).toBeLessThanOrEqual(MAX_MS * 1000);
        }
        const leftUs = breaker.isolationLeftUs(nowUs);
        if (state !== 'open') expect(leftUs).toBe(0);
        else if (leftUs !== Number.POSITIVE_INFINITY)
          expect(leftUs).toBeLessThanOrEqual(MAX_MS * 1000);
      }
    }),
    { numRuns: 500 },
  );
});

import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { mayRetry, type ResendRules } from '../src/retry.js';
import { RetryBudget } from '../src/retry-budget.js';
import type { Verdict } from '../src/verdict.js';

const refusedConnection: Verdict = { outcome: 'failure', connect: 'refused', retriable: true };
const refusal: Verdict = { outcome: 'ignored', refusal: true, status: 503 };
const reset: Verdict = { outcome: 'failure', retriable: true };
const plain503: Verdict = { outcome: 'failure', status: 503 };
const plain500: Verdict = { outcome: 'failure', status: 500 };
const quota: Verdict = { outcome: 'ignored', status: 429, retriable: false };
const noName: Verdict = { outcome: 'failure', retriable: true, safeToResend: true };

describe('what may be sent again', () => {
  it.each<{ it: string; verdict: Verdict; rules: ResendRules; may: boolean }>([
    { it: 'a GET after a reset', verdict: reset, rules: { method: 'get' }, may: true },
    { it: 'a PUT after a reset', verdict: reset, rules: { method: 'PUT' }, may: true },
    { it: 'not a POST after a reset', verdict: reset, rules: { method: 'POST' }, may: false },
    {
      it: 'a POST after a reset, if told',
      verdict: reset,
      rules: { method: 'POST', resend: true },
      may: true,
    },
    { it: 'not a PATCH', verdict: reset, rules: { method: 'PATCH' }, may: false },
    { it: 'not a call about which nothing is known', verdict: reset, rules: {}, may: false },
    {
      it: 'a POST after a refused connection',
      verdict: refusedConnection,
      rules: { method: 'POST' },
      may: true,
    },
    { it: 'a POST after a name failure', verdict: noName, rules: { method: 'POST' }, may: true },
    { it: 'a POST after a refusal', verdict: refusal, rules: { method: 'POST' }, may: true },
    { it: 'a GET after a plain 503', verdict: plain503, rules: { method: 'GET' }, may: true },
    {
      it: 'not a POST after a plain 503',
      verdict: plain503,
      rules: { method: 'POST' },
      may: false,
    },
    { it: 'not a GET after a 500', verdict: plain500, rules: { method: 'GET' }, may: false },
    { it: 'never after a 429', verdict: quota, rules: { method: 'GET', resend: true }, may: false },
    {
      it: 'never a stream, not even after a refused connection',
      verdict: refusedConnection,
      rules: { method: 'PUT', replayable: false },
      may: false,
    },
    {
      it: 'never a stream, not even if told',
      verdict: refusal,
      rules: { method: 'PUT', resend: true, replayable: false },
      may: false,
    },
  ])('$it', ({ verdict, rules, may }) => {
    expect(mayRetry(verdict, rules, new Set([503]))).toBe(may);
  });
});

describe('the retry budget', () => {
  it('pays for the floor in a quiet process, again after each window', () => {
    const clock = new VirtualClock();
    const budget = new RetryBudget({}, clock);
    budget.called();
    expect(spend(budget, 20)).toBe(10); // 0.1 of one call is not a whole token
    clock.advanceMs(9000);
    expect(spend(budget, 1)).toBe(0);
    clock.advanceMs(1000);
    expect(spend(budget, 20)).toBe(10);
  });

  it('pays for a tenth of the calls on top', () => {
    const clock = new VirtualClock();
    const budget = new RetryBudget({}, clock);
    for (let i = 0; i < 300; i++) budget.called();
    expect(spend(budget, 100)).toBe(40); // 10 + 0.1 × 300
  });

  it('does not save up over a good hour', () => {
    const clock = new VirtualClock();
    const budget = new RetryBudget({}, clock);
    for (let second = 0; second < 3600; second++) {
      for (let i = 0; i < 10; i++) budget.called();
      clock.advanceMs(1000);
    }
    expect(spend(budget, 100)).toBe(19); // 10 + 0.1 × the 90 calls in the nine slots behind this one
  });

  it('may be nothing at all', () => {
    expect(spend(new RetryBudget({ ratio: 0, floor: 0 }, new VirtualClock()), 1)).toBe(0);
  });

  it('never pays more than ratio × calls + floor in one window, whatever the order', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.constant('call' as const),
            fc.constant('retry' as const),
            fc.integer({ min: 1, max: 3000 }),
          ),
          { maxLength: 300 },
        ),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: 0, max: 20 }),
        (steps, ratio, floor) => {
          const clock = new VirtualClock();
          const budget = new RetryBudget({ ratio, floor }, clock);
          const calls: number[] = [];
          const paid: number[] = [];
          for (const step of steps) {
            if (step === 'call') {
              budget.called();
              calls.push(clock.nowUs());
            } else if (step === 'retry') {
              if (budget.trySpend()) paid.push(clock.nowUs());
              // a window of ten slots spans at least nine whole ones
              const since = clock.nowUs() - 9_000_000;
              const within = (at: number) => at > since;
              const callsOfLast10s = calls.filter((at) => at > clock.nowUs() - 10_000_000).length;
              expect(paid.filter(within).length).toBeLessThanOrEqual(
                floor + ratio * callsOfLast10s + 1e-6,
              );
            } else {
              clock.advanceMs(step);
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

function spend(budget: RetryBudget, times: number): number {
  let paid = 0;
  for (let i = 0; i < times; i++) if (budget.trySpend()) paid += 1;
  return paid;
}

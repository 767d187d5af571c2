import { Bucket, TokenBucketLaw } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

const NEVER = Number.POSITIVE_INFINITY;

function bucket(rate: number, burst: number): Bucket {
  return new Bucket(new TokenBucketLaw(rate, burst), 0);
}

describe('the token bucket', () => {
  it('grants the burst at once and then one token for each interval', () => {
    const subject = bucket(10, 3);
    expect([0, 0, 0, 0].map((at) => subject.take(1, at))).toEqual([0, 0, 0, 100_000]);
    expect(subject.take(1, 99_999)).toBe(1);
    expect(subject.take(1, 100_000)).toBe(0);
  });

  it('pays each second once, whatever the clock does', () => {
    const subject = bucket(1, 10);
    subject.take(10, 5_000_000);
    expect(subject.tokens(6_000_000)).toBe(1);
    expect(subject.tokens(1_000_000)).toBe(1); // back by five seconds: nothing comes, nothing goes
    expect(subject.tokens(6_000_000)).toBe(1);
  });

  it.each([
    { it: 'more than the burst is never granted', n: 4, waitUs: NEVER },
    { it: 'nothing is always granted', n: 0, waitUs: 0 },
    { it: 'half a token costs half', n: 0.5, waitUs: 50_000 },
  ])('$it', ({ n, waitUs }) => {
    const subject = bucket(10, 3);
    subject.take(3, 0);
    expect(subject.take(n, 0)).toBe(waitUs);
    expect(subject.tokens(0)).toBe(0);
  });

  it('stops at rate 0 and goes on from there', () => {
    const subject = bucket(10, 3);
    subject.take(3, 0);
    subject.retune(0, 3, 50_000); // half a token has come
    expect(subject.take(1, 3_600_000_000)).toBe(NEVER);
    subject.retune(1, 3, 3_600_000_000);
    expect(subject.take(1, 3_600_000_000)).toBe(500_000);
  });

  it('keeps what is there when the burst grows, and clips it when it shrinks', () => {
    const subject = bucket(10, 100);
    subject.retune(10, 1000, 0);
    expect(subject.tokens(0)).toBe(100);
    subject.retune(10, 5, 0);
    expect(subject.tokens(0)).toBe(5);
    subject.retune(10, 100, 0);
    expect(subject.tokens(0)).toBe(5);
  });

  it('lets a reservation run into debt that later ones wait for', () => {
    const subject = bucket(10, 2);
    expect([2, 1, 2].map((n) => subject.reserve(n, 0))).toEqual([0, 100_000, 300_000]);
    expect(subject.reserve(3, 0)).toBe(NEVER);
    expect(subject.take(1, 0)).toBe(400_000); // 3 owed and 1 asked
  });

  it('never puts back more than the burst holds', () => {
    const subject = bucket(10, 5);
    subject.take(2, 0);
    subject.refund(4, 0);
    expect(subject.tokens(0)).toBe(5);
  });

  it.each([
    { rate: 0.001, burst: 1 },
    { rate: 0.7, burst: 2 },
    { rate: 1000, burst: 50 },
    { rate: 1e9, burst: 1e9 },
  ])('is true to a thousandth over an hour of polling at $rate/s', ({ rate, burst }) => {
    const subject = bucket(rate, burst);
    subject.take(burst, 0);
    const n = rate < 1 ? rate : Math.floor(rate / 50);
    let taken = 0;
    // 97 polls a second, an odd gap: 10 309 µs; each takes all it can
    for (let nowUs = 0; nowUs <= 3_600_000_000; nowUs += 10_309) {
      if (subject.take(n, nowUs) === 0) taken += n;
    }
    const due = rate * 3600;
    expect(taken).toBeGreaterThan(due * 0.999 - n);
    expect(taken).toBeLessThanOrEqual(due + 1e-6);
  });

  it('loses nothing to polls far shorter than a token', () => {
    const subject = bucket(0.001, 1_000_000);
    subject.take(1, 0);
    for (let nowUs = 1; nowUs <= 1_000_000; nowUs++) subject.take(1e6, nowUs);
    expect(subject.tokens(1_000_000)).toBeCloseTo(999_999.001, 9); // a second at 0.001/s
  });

  it('admits at most burst + rate × time over any interval', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2000 }),
        fc.integer({ min: 1, max: 100 }),
        fc.array(
          fc.record({
            gapUs: fc.integer({ min: -5000, max: 500_000 }),
            n: fc.integer({ min: 0, max: 20 }),
          }),
          { maxLength: 80 },
        ),
        (rate, burst, calls) => {
          const subject = bucket(rate, burst);
          let nowUs = 1_000_000;
          let newestUs = nowUs;
          const grants: { atUs: number; n: number }[] = [];
          for (const { gapUs, n } of calls) {
            nowUs += gapUs;
            newestUs = Math.max(newestUs, nowUs);
            if (subject.take(n, nowUs) === 0) grants.push({ atUs: newestUs, n });
          }
          const excess = grants.flatMap((from, i) => {
            let sum = 0;
            return grants.slice(i).map((to) => {
              sum += to.n;
              return sum - burst - (rate * (to.atUs - from.atUs)) / 1e6;
            });
          });
          expect(Math.max(0, ...excess)).toBeLessThan(1e-6);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('tells a wait after which the tokens are there, and not before', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.001, max: 1e6, noNaN: true }),
        fc.integer({ min: 1, max: 1000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (rate, burst, share) => {
          const subject = bucket(rate, burst);
          subject.take(burst, 0);
          const n = Math.max(0.001, share * burst);
          const waitUs = subject.waitUs(n, 0);
          // a billionth of a token is forgiven: a microsecond at the slowest rate here
          if (waitUs > 2) expect(subject.waitUs(n, waitUs - 2)).toBeGreaterThan(0);
          expect(subject.waitUs(n, waitUs)).toBe(0);
        },
      ),
      { numRuns: 300 },
    );
  });
});

import { Bucket, SmoothBurstyLaw, SmoothWarmUpLaw, WarmUpLaw } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

/** How many of `count` tries, `gapUs` apart, are let through; and the last of them one by one. */
function poll(bucket: Bucket, count: number, gapUs: number): boolean[] {
  return Array.from({ length: count }, (_, i) => bucket.take(1, i * gapUs) === 0);
}

/** Six seconds at the rate of 10/s: warm. */
function warm(): Bucket {
  const subject = new Bucket(new WarmUpLaw(10, 1, 2_000_000, 3), 0);
  poll(subject, 60, 100_000);
  return subject;
}

/** The wait after one token, once it has idled. */
function priceAfter(idleUs: number): number {
  const subject = warm();
  subject.take(1, 6_000_000 + idleUs);
  return subject.waitUs(1, 6_000_000 + idleUs);
}

describe('the warm-up bucket', () => {
  it('spends from cold what Guava’s does, at a burst of 1', () => {
    const guava = new Bucket(new SmoothWarmUpLaw(10, 2_000_000, 3), 0);
    const ours = new Bucket(new WarmUpLaw(10, 1, 2_000_000, 3), 0);
    let nowUs = 0;
    for (let i = 0; i < 40; i++) {
      const waitUs = guava.reserve(1, nowUs);
      expect(ours.reserve(1, nowUs)).toBe(waitUs);
      nowUs += waitUs;
    }
    expect(nowUs).toBe(4_900_000); // cold to the threshold 2 s, then 29 at 100 ms
  });

  it('has a crowd wait when cold: of a burst of 9, three pass', () => {
    const subject = new Bucket(new WarmUpLaw(10, 9, 10_000_000, 3), 0);
    const passed = Array.from({ length: 9 }, () => subject.take(1, 0) === 0);
    // each costs somewhat less than 300 ms, and 800 ms may be owed before the last of them
    expect(passed.filter(Boolean)).toHaveLength(3);
  });

  it('has the whole burst once it is warm and paid for', () => {
    const subject = new Bucket(new WarmUpLaw(10, 9, 1_000_000, 3), 0);
    poll(subject, 100, 120_000); // twelve seconds, somewhat below the rate
    const passed = Array.from({ length: 12 }, () => subject.take(1, 12_000_000) === 0);
    expect(passed.filter(Boolean)).toHaveLength(9);
  });

  it('grants every cost up to the burst in the end, however cold', () => {
    const subject = new Bucket(new WarmUpLaw(10, 9, 10_000_000, 3), 0);
    expect(subject.take(9, 0)).toBe(0);
    const waitUs = subject.take(9, 0);
    expect(waitUs).toBeLessThan(3_000_000);
    expect(subject.take(9, waitUs)).toBe(0);
    expect(subject.take(9.1, 0)).toBe(Number.POSITIVE_INFINITY);
  });

  describe('does not fall into Guava’s traps', () => {
    it.each([
      { rate: 10, warmUpUs: 500_000, gapUs: 120_000, count: 60, guava: 20 },
      { rate: 10, warmUpUs: 500_000, gapUs: 110_000, count: 60, guava: 20 },
      { rate: 20, warmUpUs: 4_000_000, gapUs: 60_000, count: 120, guava: 40 },
    ])('a poller every $gapUs µs against $rate/s warms it, and then all its tries pass', (trap) => {
      const { rate, warmUpUs, gapUs, count, guava } = trap;
      const strict = new Bucket(new SmoothWarmUpLaw(rate, warmUpUs, 3), 0);
      expect(poll(strict, count, gapUs).filter(Boolean)).toHaveLength(guava);
      const ours = new Bucket(new WarmUpLaw(rate, 1, warmUpUs, 3), 0);
      const granted = poll(ours, count * 3, gapUs);
      expect(granted.slice(count).every(Boolean)).toBe(true);
      expect(granted.slice(0, count).filter(Boolean).length).toBeGreaterThan(guava);
    });

    it('an oversized first request is refused for good instead of granted at the next one’s cost', () => {
      const strict = new Bucket(new SmoothBurstyLaw(10, 10), 0);
      expect([strict.reserve(1000, 0), strict.reserve(1, 0)]).toEqual([0, 100_000_000]);
      const ours = new Bucket(new WarmUpLaw(10, 10, 1000, 3), 0);
      expect(ours.reserve(1000, 0)).toBe(Number.POSITIVE_INFINITY);
      expect(ours.take(1, 0)).toBe(0);
    });

    it('debt is looked at with what is asked: a large request waits for its own room', () => {
      // Guava’s try sees only the debt of those before: after 50 at 10/s everybody is refused for 5 s
      const ours = new Bucket(new WarmUpLaw(10, 50, 1000, 1), 0);
      expect(ours.take(50, 0)).toBe(0);
      expect(ours.take(1, 0)).toBe(100_000);
      expect(ours.take(50, 0)).toBe(5_000_000);
    });
  });

  it('goes cold in one warm-up time of idling, and not before', () => {
    expect(priceAfter(100_000)).toBe(100_000);
    expect(priceAfter(1_200_000)).toBe(110_000); // half cold is where the slope begins: a token above it
    expect(priceAfter(2_200_000)).toBe(290_000);
    expect(priceAfter(3_600_000_000)).toBe(290_000);
  });

  it('keeps debt and warmth over a change of rate, and stands still at rate 0', () => {
    const subject = new Bucket(new WarmUpLaw(10, 1, 2_000_000, 3), 0);
    poll(subject, 60, 100_000); // warm; one token owed until 6 s
    subject.retune(0, 1, 5_950_000);
    expect(subject.take(1, 3_600_000_000)).toBe(Number.POSITIVE_INFINITY);
    subject.retune(20, 1, 3_600_000_000);
    expect(subject.waitUs(1, 3_600_000_000)).toBe(25_000); // half a token owed, at 20/s
  });

  it('never admits more than burst + rate × time, nor stays shut for a caller at a third of the rate', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 200 }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 5_000_000 }),
        fc.double({ min: 1, max: 10, noNaN: true }),
        fc.array(fc.integer({ min: 0, max: 300_000 }), { maxLength: 100 }),
        (rate, burst, warmUpUs, coldFactor, gaps) => {
          const subject = new Bucket(new WarmUpLaw(rate, burst, warmUpUs, coldFactor), 0);
          let nowUs = 0;
          let taken = 0;
          for (const gapUs of gaps) {
            nowUs += gapUs;
            if (subject.take(1, nowUs) === 0) taken += 1;
          }
          expect(taken).toBeLessThanOrEqual(burst + (rate * nowUs) / 1e6 + 1e-6);
          expect(subject.waitUs(1, nowUs)).toBeLessThanOrEqual(
            Math.ceil((coldFactor * 1e6) / rate) + 1,
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});

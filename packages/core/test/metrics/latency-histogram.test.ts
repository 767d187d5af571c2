import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  bucketOf,
  LATENCY_RELATIVE_ERROR,
  LatencyHistogram,
  middleOf,
} from '../../src/metrics/latency-histogram.js';

function filled(values: readonly number[]): LatencyHistogram {
  const histogram = new LatencyHistogram();
  histogram.roll(0);
  for (const value of values) histogram.add(value);
  return histogram;
}

describe('the latency histogram', () => {
  it('states an error of 1/64', () => {
    expect(LATENCY_RELATIVE_ERROR).toBe(1 / 64);
  });

  it.each([
    [0, 0],
    [31, 31],
    [63, 63],
    [64, 64],
    [65, 64],
    [66, 65],
    [127, 95],
    [128, 96],
    [2 ** 32 - 1, 895],
  ])('counts %d us in bucket %d', (us, bucket) => {
    expect(bucketOf(us)).toBe(bucket);
  });

  it('gives every value back within its stated error', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (us) => {
        expect(Math.abs(middleOf(bucketOf(us)) - us)).toBeLessThanOrEqual(
          us * LATENCY_RELATIVE_ERROR,
        );
      }),
      { numRuns: 2000 },
    );
  });

  it('has percentiles of nearest rank within its stated error, and an exact count, mean and maximum', () => {
    const latency = fc.oneof(fc.nat(100), fc.nat(100_000), fc.nat(2 ** 31 - 1));
    fc.assert(
      fc.property(fc.array(latency, { minLength: 1, maxLength: 300 }), (values) => {
        const { count, meanUs, maxUs, ...at } = filled(values).snapshot(0);
        const sorted = values.toSorted((a, b) => a - b);
        expect(count).toBe(values.length);
        expect(maxUs).toBe(sorted.at(-1));
        expect(meanUs).toBe(values.reduce((sum, value) => sum + value, 0) / values.length);
        for (const [ratio, got] of [
          [0.5, at.p50Us],
          [0.9, at.p90Us],
          [0.99, at.p99Us],
          [0.999, at.p999Us],
        ] as const) {
          const exact = sorted[Math.ceil(ratio * sorted.length) - 1] as number;
          expect(Math.abs(got - exact)).toBeLessThanOrEqual(exact * LATENCY_RELATIVE_ERROR);
        }
      }),
      { numRuns: 300 },
    );
  });

  it('holds latencies of any length: those over 71 minutes count as that, their mean and maximum stay', () => {
    const { p50Us, maxUs, meanUs } = filled([2 ** 40]).snapshot(0);
    expect([maxUs, meanUs]).toEqual([2 ** 40, 2 ** 40]);
    expect(p50Us).toBeGreaterThan(2 ** 32 * (1 - LATENCY_RELATIVE_ERROR));
  });

  it('is all zeros while nothing was measured', () => {
    expect(new LatencyHistogram().snapshot(5)).toEqual({
      count: 0,
      meanUs: 0,
      p50Us: 0,
      p90Us: 0,
      p99Us: 0,
      p999Us: 0,
      maxUs: 0,
    });
  });

  it('forgets a latency between 40 and 60 seconds later', () => {
    const histogram = filled([100]);
    const counts: number[] = [];
    for (let s = 0; s <= 80; s += 10) {
      if (s === 30) histogram.add(300);
      counts.push(histogram.snapshot(s * 1e6).count);
    }
    // in slices of 20 s: 0–20 (with the 100), 20–40 (with the 300), 40–60, 60–80, 80–100
    expect(counts).toEqual([1, 1, 1, 2, 2, 2, 1, 1, 0]);
  });

  it('holds nothing after an idle hour', () => {
    const histogram = filled([1, 2, 3]);
    expect(histogram.snapshot(3600e6).count).toBe(0);
    histogram.add(9);
    expect(histogram.snapshot(3600e6)).toMatchObject({ count: 1, p50Us: 9 });
  });
});

import { describe, expect, it } from '@jest/globals';
import type { Outcome } from '../../src/index.js';
import { GradientLimiter, resolveGradientOptions } from '../../src/limiter/gradient.js';

const START_US = 10_000_000;
const make = (options: object = {}): GradientLimiter =>
  new GradientLimiter(resolveGradientOptions({ minSampleCount: 2, ...options }), {
    random: () => 0,
    nowUs: START_US,
  });

/** One window per entry, with two successes of these milliseconds: the first in its middle, the second closing it. */
function windows(limiter: GradientLimiter, latencies: [first: number, last: number][]): number[] {
  limiter.record('success', 1_000_000, START_US); // opens the first window
  return latencies.map(([first, last], i) => {
    limiter.record('success', first * 1000, START_US + i * 1_000_000 + 500_000);
    limiter.record('success', last * 1000, START_US + (i + 1) * 1_000_000);
    return limiter.maxConcurrency;
  });
}

describe('minLatency / latency × limit + √limit, worked out by hand', () => {
  it.each<{ it: string; options?: object; latencies: [number, number][]; limits: number[] }>([
    {
      it: 'climbs while latency is flat',
      latencies: [
        [10, 12],
        [10, 15],
      ],
      limits: [24, 28], // 20 + 4.47; 24 + 4.90
    },
    {
      it: 'takes the least latency of the window, and falls with the ratio',
      latencies: [
        [10, 12],
        [20, 16],
      ],
      limits: [24, 19], // 10 / 16 × 24 + 4.90 = 19.9
    },
    {
      it: 'takes no ratio below a half',
      latencies: [
        [10, 10],
        [1000, 1000],
      ],
      limits: [24, 16], // 12 + 4.90
    },
    {
      it: 'takes no ratio above one',
      latencies: [
        [10, 10],
        [1, 1],
      ],
      limits: [24, 28],
    },
    {
      it: 'forgets the least latency after so many windows',
      options: { windows: 2 },
      latencies: [
        [10, 10],
        [20, 20],
        [20, 20],
      ],
      limits: [24, 16, 20], // 10/20 × 24 + 4.90; then 20/20 × 16 + 4
    },
    {
      it: 'takes a queue size',
      options: { queueSize: 2 },
      latencies: [
        [10, 10],
        [20, 20],
      ],
      limits: [22, 13], // 20 + 2; 11 + 2
    },
    {
      it: 'keeps its bounds',
      options: { minConcurrency: 15, maxConcurrency: 21, queueSize: 0 },
      latencies: [
        [10, 10],
        [20, 20],
        [20, 20],
      ],
      limits: [20, 15, 15],
    },
    {
      it: 'takes a latency of 0 for as fast as can be',
      latencies: [
        [0, 0],
        [0, 0],
        [10, 10],
      ],
      limits: [24, 28, 19], // ratio 0, kept at a half: 14 + 5.29
    },
  ])('$it', ({ options = {}, latencies, limits }) => {
    expect(windows(make(options), latencies)).toEqual(limits);
  });
});

it('throws away a window with too few successes', () => {
  const limiter = make({ minSampleCount: 3 });
  for (const atMs of [0, 1000, 1001]) limiter.record('success', 1000, START_US + atMs * 1000);
  expect(limiter.maxConcurrency).toBe(20);
  expect(limiter.estimates().minLatencyUs).toBe(-1);
});

it.each<Outcome>(['failure', 'ignored', 'abandoned'])('measures no %s', (outcome) => {
  const limiter = make();
  windows(limiter, [[10, 10]]);
  for (let i = 0; i < 100; i++) limiter.record(outcome, 1, START_US + 1_000_000 + i * 100_000);
  expect(limiter.maxConcurrency).toBe(24);
  expect(limiter.estimates().minLatencyUs).toBe(10_000);
});

describe('options', () => {
  it.each<[options: object, message: string]>([
    [{ windows: 0 }, 'gradient.windows must be a whole number from 1 to 1000, got 0'],
    [{ queueSize: -2 }, 'gradient.queueSize must be a number of at least 0, got -2'],
    [
      { minConcurrency: 9, maxConcurrency: 8 },
      'gradient.maxConcurrency must be a whole number from 9 to 2147483647, got 8',
    ],
    [
      { initialMaxConcurrency: 9, maxConcurrency: 8 },
      'gradient.initialMaxConcurrency must be a whole number from 1 to 8, got 9',
    ],
    [{ smoothing: 1 }, 'gradient.smoothing is not an option; known: sampleWindowMs,'],
  ])('%j is refused', (options, message) => {
    expect(() => resolveGradientOptions(options)).toThrow(message);
  });

  it('starts within the bounds when no start is given', () => {
    expect(make({ maxConcurrency: 5 }).maxConcurrency).toBe(5);
    expect(make({ minConcurrency: 50 }).maxConcurrency).toBe(50);
  });

  it('brings the limit within new bounds at once', () => {
    const limiter = make();
    limiter.configure({ maxConcurrency: 5 });
    expect(limiter.maxConcurrency).toBe(5);
  });
});

import { describe, expect, it } from '@jest/globals';
import { createLimiter, parseMaxConcurrency } from '../../src/index.js';
import { AutoStrictLimiter, resolveAutoStrictOptions } from '../../src/limiter/auto-strict.js';

const START_US = 10_000_000;
const make = (options: object, chance = 0): AutoStrictLimiter =>
  new AutoStrictLimiter(resolveAutoStrictOptions(options), {
    random: () => chance,
    nowUs: START_US,
  });

/** `n` successes, one per `gapUs` after `fromUs`. The time of the last. */
function succeed(
  limiter: AutoStrictLimiter,
  fromUs: number,
  n: number,
  gapUs: number,
  latencyUs: number,
): number {
  let nowUs = fromUs;
  for (let i = 0; i < n; i++) {
    nowUs += gapUs;
    limiter.record('success', latencyUs, nowUs);
  }
  return nowUs;
}

describe('the law of brpc’s documentation', () => {
  const small = {
    law: 'documented',
    minSampleCount: 2,
    maxSampleCount: 4,
    samplingIntervalMs: 0,
    minConcurrency: 1,
    remeasureIntervalMs: 10_000,
  };

  it('moves by maxQps × ((2 + alpha) × minLatency − latency), worked out by hand', () => {
    const limiter = make(small);
    // four samples, 3 ms from the first to the last: 4 / 3 ms = 1333.3/s; (2.3 × 50 − 50) ms × 1333.3/s = 86.7
    let nowUs = succeed(limiter, START_US, 4, 1000, 50_000);
    expect(limiter.state()).toMatchObject({ maxConcurrency: 86, minLatencyUs: 50_000 });

    // four in 4 ms: 1000/s, so 1333.3 falls by a hundredth of the way to 1330; the minimum does not rise;
    // (115 − 60) ms × 1330/s = 73.15
    nowUs = succeed(limiter, nowUs, 4, 1000, 60_000);
    expect(limiter.state()).toMatchObject({ maxConcurrency: 73, minLatencyUs: 50_000 });
    expect(limiter.estimates().maxQps).toBeCloseTo(1330, 9);

    // the minimum falls a tenth of the way to 40 ms: 49 ms; (2.3 × 49 − 40) ms × 1326.7/s = 96.45
    nowUs = succeed(limiter, nowUs, 4, 1000, 40_000);
    expect(limiter.state()).toMatchObject({ maxConcurrency: 96, minLatencyUs: 49_000 });
    expect(limiter.estimates()).toMatchObject({ exploreRatio: -1 });
  });

  it('halves the limit to re-measure, drains twice the latency, then forgets the minimum', () => {
    const limiter = make(small); // re-measures from 5 s after the start on
    succeed(limiter, START_US, 4, 1000, 50_000); // limit 86
    // 5 s later: the first sample finds a window of one, thrown away; four more close the next, at 5.004 s
    const nowUs = succeed(limiter, START_US + 4_999_000, 5, 1000, 50_000);
    expect(limiter.state()).toMatchObject({
      maxConcurrency: 43,
      drainUntilUs: nowUs + 100_000,
      minLatencyUs: 50_000,
    });
    limiter.record('success', 1, nowUs + 99_999);
    expect(limiter.state()).toMatchObject({ successes: 0, minLatencyUs: 50_000 }); // dropped
    limiter.record('success', 1, nowUs + 100_000);
    expect(limiter.state()).toMatchObject({ successes: 1, minLatencyUs: -1, drainUntilUs: 0 });
  });

  it('falls to the floor when the queue is longer than the law allows, and keeps the upper bound', () => {
    const limiter = make({ ...small, minConcurrency: 3, maxConcurrency: 60 });
    const nowUs = succeed(limiter, START_US, 4, 1000, 50_000);
    expect(limiter.maxConcurrency).toBe(60); // 86 without the bound
    succeed(limiter, nowUs, 4, 1000, 200_000); // 115 − 200 ms: below nothing
    expect(limiter.maxConcurrency).toBe(3);
  });

  it('halves on a window without a success', () => {
    const limiter = make(small);
    for (let i = 1; i <= 4; i++) limiter.record('failure', 1000, START_US + i * 1000);
    expect(limiter.maxConcurrency).toBe(20);
  });

  it('takes alpha', () => {
    const limiter = make({ ...small, alpha: 1 });
    succeed(limiter, START_US, 4, 1000, 50_000); // (3 × 50 − 50) ms × 1333.3/s = 133.3
    expect(limiter.maxConcurrency).toBe(133);
  });
});

describe('the numbers of brpc’s own tests', () => {
  const unit = { sampleWindowMs: 10, minSampleCount: 5, samplingIntervalMs: 0 };

  it.each<[threshold: number, ok: number, failed: number, okUs: number, meanUs: number]>([
    [0, 90, 10, 100, 212],
    [0.2, 90, 10, 100, 100],
    [0.1, 90, 10, 100, 100],
    [0.1, 50, 50, 100, 545],
    [0.1, 10, 90, 100, 8100],
  ])(
    'error threshold %d, %d good and %d failed: a mean of %4$d us',
    (threshold, ok, failed, okUs, meanUs) => {
      const limiter = make({ ...unit, errorRatePunishThreshold: threshold, maxSampleCount: 200 });
      for (let i = 0; i < ok - 1; i++) limiter.record('success', okUs, START_US);
      for (let i = 0; i < failed; i++) limiter.record('failure', 1000, START_US);
      limiter.record('success', okUs, START_US + 10_000);
      expect(limiter.estimates().minLatencyUs).toBe(meanUs);
    },
  );
});

it('re-measures between half and the whole of the interval, as chance has it', () => {
  // 50 s: half is 25 s, and chance adds up to (not including) as much again, in whole milliseconds
  expect(make({}, 0).state()).toMatchObject({ remeasureAtUs: START_US + 25_000_000 });
  expect(make({}, 0.5).state()).toMatchObject({ remeasureAtUs: START_US + 37_500_000 });
  expect(make({}, 1 - 2 ** -53).state()).toMatchObject({ remeasureAtUs: START_US + 49_999_000 });
});

it('counts a call whose client left like a failure: it makes the mean longer, never shorter', () => {
  const limiter = make({ minSampleCount: 2, maxSampleCount: 2, samplingIntervalMs: 0 });
  limiter.record('success', 1000, START_US + 1);
  limiter.record('abandoned', 500, START_US + 2);
  expect(limiter.estimates().minLatencyUs).toBe(1500);
});

it('has a rate also when a window ends in the instant it began', () => {
  const limiter = make({ minSampleCount: 2, maxSampleCount: 2, samplingIntervalMs: 0 });
  for (let i = 0; i < 100; i++) limiter.record('success', 1000, START_US);
  expect(limiter.estimates().maxQps).toBe(2_000_000); // two calls in the 1 us that bounds it
  expect(limiter.maxConcurrency).toBe(2600); // 1 ms × 2 000 000/s × 1.3
});

describe('options', () => {
  it.each<[options: object, error: typeof TypeError | typeof RangeError, message: string]>([
    [
      { sampleWindowMs: 0 },
      RangeError,
      'auto.sampleWindowMs must be a whole number from 1 to 2147483647, got 0',
    ],
    [{ sampleWindowMs: Number.NaN }, RangeError, 'got NaN'],
    [
      { samplingIntervalMs: '1' },
      TypeError,
      'auto.samplingIntervalMs must be a number of at least 0, got "1"',
    ],
    [{ emaAlpha: 1.1 }, RangeError, 'auto.emaAlpha must be a number from 0 to 1, got 1.1'],
    [{ errorPunish: 1 }, TypeError, 'auto.errorPunish must be true or false, got 1'],
    [
      { minConcurrency: 20, maxConcurrency: 10 },
      RangeError,
      'auto.maxConcurrency must be a whole number from 20 to 2147483647, got 10',
    ],
    [
      { initialMaxConcurrency: 50, maxConcurrency: 10 },
      RangeError,
      'auto.initialMaxConcurrency must be a whole number from 1 to 10, got 50',
    ],
    [{ law: 'netflix' }, RangeError, 'auto.law must be one of code, documented, got "netflix"'],
    [{ alpha: 0.3 }, TypeError, 'auto.alpha is not an option; known: sampleWindowMs,'],
    [{ law: 'documented', exploreStep: 0.1 }, TypeError, 'auto.exploreStep is not an option'],
    [{ maxQps: 5 }, TypeError, 'auto.maxQps is not an option'],
  ])('%j is refused', (options, error, message) => {
    const read = () => resolveAutoStrictOptions(options);
    expect(read).toThrow(error);
    expect(read).toThrow(message);
  });

  it('starts no higher than the upper bound', () => {
    expect(make({ maxConcurrency: 10 }).maxConcurrency).toBe(10);
  });

  it('are those of brpc by default', () => {
    expect(
      Object.fromEntries(
        make({})
          .flags()
          .map(({ name, value }) => [name, value]),
      ),
    ).toEqual({
      sampleWindowMs: 1000,
      minSampleCount: 100,
      maxSampleCount: 200,
      samplingIntervalMs: 0.1,
      initialMaxConcurrency: 40,
      remeasureIntervalMs: 50_000,
      emaAlpha: 0.1,
      errorPunish: true,
      failPunishRatio: 1,
      errorRatePunishThreshold: 0,
      minConcurrency: 9,
      maxConcurrency: 2_147_483_647,
      maxExploreRatio: 0.3,
      minExploreRatio: 0.06,
      exploreStep: 0.02,
      remeasureReduceRatio: 0.9,
      latencyFluctuationCorrection: 1,
    });
  });

  it('change while running, all or none of them', () => {
    const limiter = make({});
    limiter.configure({ maxSampleCount: 300, minConcurrency: 4 });
    const change = () => limiter.configure({ maxSampleCount: 500, emaAlpha: 2 });
    expect(change).toThrow('auto.emaAlpha must be a number from 0 to 1, got 2');
    const flags = Object.fromEntries(limiter.flags().map(({ name, value }) => [name, value]));
    expect(flags).toMatchObject({ maxSampleCount: 300, minConcurrency: 4, emaAlpha: 0.1 });
  });

  it('say so when they are fixed at construction', () => {
    const limiter = make({});
    expect(() => limiter.configure({ initialMaxConcurrency: 50 })).toThrow(
      new TypeError('auto.initialMaxConcurrency is fixed at construction (40), got 50'),
    );
    limiter.configure({ initialMaxConcurrency: 40 }); // as it stands
    expect(limiter.flags().find(({ name }) => name === 'initialMaxConcurrency')?.live).toBe(false);
  });
});

it('is what a user gets who asks for it', () => {
  const limiter = createLimiter(parseMaxConcurrency({ type: 'auto', strict: true }), {
    random: () => 0,
    nowUs: START_US,
  });
  expect(limiter).toBeInstanceOf(AutoStrictLimiter);
});

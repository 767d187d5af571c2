import { describe, expect, it } from '@jest/globals';
import type { Outcome } from '../../src/index.js';
import {
  resolveTimeoutStrictOptions,
  TimeoutStrictLimiter,
} from '../../src/limiter/timeout-strict.js';

const START_US = 10_000_000;
const FAR = Number.POSITIVE_INFINITY;
const make = (options: object = {}): TimeoutStrictLimiter =>
  new TimeoutStrictLimiter(resolveTimeoutStrictOptions(options), {
    random: () => 0,
    nowUs: START_US,
  });

const times = (n: number, atMs = 0): [Outcome, number][] =>
  Array.from({ length: n }, () => ['success', atMs]);

describe('admission', () => {
  it.each<{
    it: string;
    options?: object;
    inflight: number;
    remainingUs?: number;
    admits: boolean;
  }>([
    {
      it: 'takes up to maxConcurrency while the average is below the timeout',
      inflight: 100,
      admits: true,
    },
    { it: 'takes no more than that', inflight: 101, admits: false },
    {
      it: 'compares strictly',
      options: { timeoutMs: 1, initialAvgLatencyMs: 1 },
      inflight: 2,
      admits: false,
    },
    {
      it: 'lets a lone call through in any case',
      options: { timeoutMs: 0 },
      inflight: 1,
      admits: true,
    },
    {
      it: 'prefers a carried timeout, also a longer one',
      options: { timeoutMs: 0 },
      inflight: 2,
      remainingUs: 501,
      admits: true,
    },
    {
      it: 'prefers a carried timeout, also a shorter one',
      inflight: 2,
      remainingUs: 500,
      admits: false,
    },
  ])('$it', ({ options = {}, inflight, remainingUs = FAR, admits }) => {
    expect(make(options).admits(inflight, START_US, remainingUs)).toBe(admits);
  });
});

describe('the numbers of brpc’s own tests', () => {
  const unit = { sampleWindowMs: 10, minSampleCount: 5, maxSampleCount: 10, samplingIntervalMs: 0 };
  const play = (samples: [Outcome, atMs: number][]): TimeoutStrictLimiter => {
    const limiter = make(unit);
    for (const [outcome, atMs] of samples) limiter.record(outcome, 50, START_US + atMs * 1000);
    return limiter;
  };

  it.each<{ it: string; samples: [Outcome, number][]; state: object }>([
    {
      it: 'four, a pause, a fifth',
      samples: [...times(4), ...times(1, 10)],
      state: { successes: 0, avgLatencyUs: 50 },
    },
    {
      it: 'five, a pause, one',
      samples: [...times(5), ...times(1, 10)],
      state: { successes: 0, avgLatencyUs: 50 },
    },
    {
      it: 'ten at once close the window early',
      samples: times(10),
      state: { successes: 0, avgLatencyUs: 50 },
    },
    { it: 'six are counted', samples: times(6), state: { successes: 6, avgLatencyUs: 500 } },
    {
      it: 'three good and three failed',
      samples: [...times(3), ['failure', 0], ['failure', 0], ['failure', 0]],
      state: { successes: 3, failures: 3 },
    },
  ])('$it', ({ samples, state }) => {
    expect(play(samples).state()).toMatchObject(state);
  });

  it('counts one of two calls that end together', () => {
    const limiter = make();
    for (const us of [0, 0, 100, 100]) limiter.record('success', 50, START_US + us);
    expect(limiter.state()).toMatchObject({ successes: 2 });
  });
});

it('doubles the average on windows without a success, and stays finite', () => {
  const limiter = make({ minSampleCount: 1, maxSampleCount: 1, samplingIntervalMs: 0 });
  limiter.record('failure', 1, START_US);
  expect(limiter.state()).toMatchObject({ avgLatencyUs: 1000 });
  for (let i = 1; i < 2000; i++) limiter.record('failure', 1, START_US + i);
  expect(limiter.state()).toMatchObject({ avgLatencyUs: Number.MAX_SAFE_INTEGER });
});

it('reports the cap, or what it was told to report', () => {
  expect(make({ maxConcurrency: 30 }).maxConcurrency).toBe(30);
  const told = make({ maxConcurrency: 30, reportedMaxConcurrency: 100 });
  expect(told.maxConcurrency).toBe(100);
  expect(told.admits(31, START_US, FAR)).toBe(false);
});

it('takes new options while running', () => {
  const limiter = make();
  limiter.configure({ timeoutMs: 0 });
  expect(limiter.admits(2, START_US, FAR)).toBe(false);
  expect(() => limiter.configure({ initialAvgLatencyMs: 1 })).toThrow(
    new TypeError('timeout.initialAvgLatencyMs is fixed at construction (0.5), got 1'),
  );
});

import type { Random } from '@elimit/core';
import { seededRandom } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';
import type { Admission } from '../../src/sim/admission.js';
import { drawFrom, meanUs } from '../../src/sim/distribution.js';
import { EventQueue } from '../../src/sim/event-queue.js';
import { median } from '../../src/sim/judge.js';
import { meanOfSmaller, OverTime } from '../../src/sim/over-time.js';
import { parseScenario, type Scenario } from '../../src/sim/scenario.js';
import { simulate } from '../../src/sim/simulate.js';
import { variationsOf } from '../../src/sim/vary.js';

const base = {
  format: 1,
  row: 0,
  name: 'test',
  durationS: 400,
  measureS: [[20, 400]],
  deadlineMs: 100_000,
  capacity: 100,
  stages: [{ kind: 'servers', count: 1, serviceMs: { dist: 'exp', mean: 10 } }],
  rate: 50,
  expect: [{ measure: 0, refusedMax: 1 }],
};
const scenario = (changes: object = {}): Scenario => parseScenario({ ...base, ...changes });

class Counting implements Admission {
  inflight = 0;
  constructor(readonly limit: number) {}
  admit(): boolean {
    if (this.inflight >= this.limit) return false;
    this.inflight++;
    return true;
  }
  end(): void {
    this.inflight--;
  }
}

it('agrees with the formulas of a queue: M/M/1 at half load waits as long as it works', () => {
  const { windows } = simulate(
    scenario({ durationS: 4000, measureS: [[20, 4000]] }),
    () => new Counting(1e9),
    1,
  );
  // sojourn is exponential with mean 10 / (1 − 0.5) = 20 ms: median 20 ln 2 = 13.9, p99 20 ln 100 = 92.1
  expect(windows[0]?.p50Ms).toBeCloseTo(13.9, 0);
  expect(Math.abs((windows[0]?.p99Ms ?? 0) - 92.1)).toBeLessThan(4);
  expect(windows[0]?.refused).toBe(0);
});

it('agrees with Erlang: one server without a queue at load 1 refuses half', () => {
  const { windows } = simulate(
    scenario({ rate: 100, durationS: 2000, measureS: [[20, 2000]] }),
    () => new Counting(1),
    1,
  );
  expect(Math.abs((windows[0]?.refused ?? 0) - 0.5)).toBeLessThan(0.005);
});

it('repeats itself: the same seed gives the same figures, another seed others', () => {
  const run = (seed: number) => simulate(scenario(), () => new Counting(3), seed);
  expect(run(1)).toEqual(run(1));
  expect(run(1)).not.toEqual(run(2));
});

it('counts calls that fail, come again and are late', () => {
  const { windows } = simulate(
    scenario({ failures: { share: 0.25, latency: 'fast' }, deadlineMs: 1e-3 }),
    () => new Counting(1e9),
    1,
  );
  expect(windows[0]?.goodput).toBeLessThan(0.001); // next to nothing takes less than a microsecond, but failures
  expect(Math.abs((windows[0]?.late ?? 0) - 0.75)).toBeLessThan(0.01);
  const refusing = simulate(
    scenario({ retries: { times: 2, afterMs: [50, 150] } }),
    () => new Counting(0),
    1,
  );
  expect(refusing.windows[0]?.refused).toBe(1);
  expect(Math.abs((refusing.windows[0]?.offered ?? 0) / (380 * 150) - 1)).toBeLessThan(0.02); // each comes three times
});

it('the queue of events gives them back in order of time', () => {
  const queue = new EventQueue();
  const random = seededRandom(5);
  const times = Array.from({ length: 5000 }, random);
  times.forEach((time, i) => {
    queue.push(time, i);
  });
  const out: number[] = [];
  while (queue.size > 0) out.push(times[queue.pop()] as number);
  expect(out).toEqual(times.toSorted((a, b) => a - b));
});

it.each([
  {
    it: 'a number',
    spec: 5,
    at: [
      [0, 5],
      [99, 5],
    ],
  },
  {
    it: 'steps',
    spec: {
      steps: [
        [0, 1],
        [10, 3],
      ],
    },
    at: [
      [9.9, 1],
      [10, 3],
      [99, 3],
    ],
  },
  {
    it: 'a ramp, flat before and behind',
    spec: {
      ramp: [
        [10, 0],
        [20, 10],
      ],
    },
    at: [
      [5, 0],
      [15, 5],
      [30, 10],
    ],
  },
  {
    it: 'a cycle',
    spec: {
      cycle: 3,
      steps: [
        [0, 9],
        [1, 2],
      ],
    },
    at: [
      [0.5, 9],
      [2, 2],
      [3.5, 9],
    ],
  },
] as const)('a value over time: $it', ({ spec, at }) => {
  const value = new OverTime(spec);
  for (const [s, v] of at) expect(value.at(s)).toBeCloseTo(v, 9);
});

it('knows when a changing rate has brought so many calls', () => {
  const ramp = new OverTime({
    ramp: [
      [0, 0],
      [10, 10],
    ],
  });
  expect(ramp.whenGrownBy(50, 0)).toBeCloseTo(10, 9); // half of ten by ten
  expect(ramp.whenGrownBy(60, 0)).toBeCloseTo(11, 9); // ten more at ten a second
  expect(
    new OverTime({
      steps: [
        [0, 5],
        [1, 0],
      ],
    }).whenGrownBy(6, 0),
  ).toBe(Infinity);
});

it('the ideal of a window is the mean of the smaller of rate and capacity', () => {
  const bursts = new OverTime({
    cycle: 3,
    steps: [
      [0, 4800],
      [1, 320],
    ],
  });
  expect(meanOfSmaller(bursts, new OverTime(1600), 12, 60)).toBeCloseTo((1600 + 2 * 320) / 3, 6);
  const ramp = new OverTime({
    ramp: [
      [0, 0],
      [10, 10],
    ],
  });
  expect(meanOfSmaller(ramp, new OverTime(5), 0, 10)).toBeCloseTo(3.75, 6); // 12.5 of the triangle, 25 of the flat
});

it.each([
  { dist: 'fixed', mean: 7 },
  { dist: 'exp', mean: 7 },
  { dist: 'lognormal', mean: 7, cv: 1.5 },
  { dist: 'bimodal', fast: 1, slow: 61, share: 0.1 },
  { dist: 'pareto', min: 3, alpha: 2.5, max: 1000 },
] as const)('draws of $dist have the mean they should', (spec) => {
  const draw = drawFrom(spec, seededRandom(3));
  let sum = 0;
  for (let i = 0; i < 400_000; i++) sum += draw(0);
  expect(Math.abs(sum / 400_000 / meanUs(spec) - 1)).toBeLessThan(0.02);
});

it.each<{ it: string; changes: object; says: RegExp }>([
  {
    it: 'an unknown field',
    changes: { speed: 1 },
    says: /scenario\.speed is not a field; known: format/,
  },
  { it: 'a missing field', changes: { rate: undefined }, says: /scenario\.rate is missing/ },
  {
    it: 'an unknown distribution',
    changes: { stages: [{ kind: 'delay', serviceMs: { dist: 'gamma', mean: 1 } }] },
    says: /stages\[0\]\.serviceMs\.dist must be one of fixed, exp/,
  },
  {
    it: 'a window behind the end',
    changes: { measureS: [[0, 500]] },
    says: /end within durationS 400/,
  },
  {
    it: 'an expectation of no window',
    changes: { expect: [{ measure: 1, refusedMax: 0 }] },
    says: /expect\[0\]\.measure must be the place of a window/,
  },
  {
    it: 'steps that go back',
    changes: {
      rate: {
        steps: [
          [5, 1],
          [3, 1],
        ],
      },
    },
    says: /rate\.steps\[1\] must be/,
  },
  {
    it: 'shares that do not sum to one',
    changes: { classes: [{ name: 'critical', share: 0.5 }] },
    says: /shares that sum to 1/,
  },
  {
    it: 'both kinds of failure',
    changes: { failures: { share: 0.1, latency: 'fast', latencyMs: 3 } },
    says: /either latency or latencyMs/,
  },
])('refuses $it, and says what would be right', ({ changes, says }) => {
  const value = JSON.parse(JSON.stringify({ ...base, ...changes })) as unknown;
  expect(() => parseScenario(value)).toThrow(says);
});

describe('variations of a scenario', () => {
  const story = scenario({
    capacity: 1600,
    rate: {
      steps: [
        [0, 800],
        [30, 4800],
      ],
    },
    durationS: 50,
    measureS: [
      [30, 32],
      [32, 50],
    ],
    stages: [
      { kind: 'servers', count: 4, serviceMs: { dist: 'exp', mean: 2.5 } },
      { kind: 'delay', serviceMs: { dist: 'fixed', mean: 40 } },
    ],
    expect: [{ measure: 1, goodputMin: 0.985, p99Max: 72 }],
  });
  const told = variationsOf(story, 20, 1);

  it('are scenarios, and the same ones for a seed', () => {
    for (const one of told)
      expect(() => parseScenario(JSON.parse(JSON.stringify(one)))).not.toThrow();
    expect(variationsOf(story, 20, 1)).toEqual(told);
    expect(variationsOf(story, 20, 2)).not.toEqual(told);
  });

  it('of a service without servers are scenarios too', () => {
    const [one] = variationsOf({ ...story, stages: story.stages.slice(1) }, 1, 1);
    expect(() => parseScenario(JSON.parse(JSON.stringify(one)))).not.toThrow();
  });

  it('keep what the story is about: loads as shares of what the servers can do, marks, the step and what follows it', () => {
    for (const one of told) {
      const [servers, delay] = one.stages as unknown as [
        { count: number; serviceMs: { mean: number } },
        { serviceMs: { mean: number } },
      ];
      expect(one.capacity).toBeCloseTo((1000 * servers.count) / servers.serviceMs.mean, 0);
      const { steps } = one.rate as { steps: [number, number][] };
      const [[, before], [atS, after]] = steps as [[number, number], [number, number]];
      expect(before / (one.capacity as number)).toBeLessThanOrEqual(0.5001);
      expect(after / (one.capacity as number)).toBeGreaterThanOrEqual(2.499); // 1 + 2 × 0.75
      expect(one.measureS[0]?.[0]).toBe(atS);
      expect(one.measureS[0]?.[1]).toBeGreaterThanOrEqual(atS + 1.99);
      expect(one.measureS[1]?.[1]).toBe(one.durationS);
      expect(one.expect[0]?.goodputMin).toBe(0.985);
      const noLoadMs = servers.serviceMs.mean + delay.serviceMs.mean;
      expect(one.expect[0]?.p99Max).toBeGreaterThan(noLoadMs);
    }
  });
});

it('the median of an even number is the mean of the two in the middle', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 2, 3])).toBe(2.5);
});

it('streams of chance do not depend on what an arm draws', () => {
  const offered: number[] = [];
  const drawing = (random: Random): Admission => {
    const admission = new Counting(2);
    return { limit: 2, admit: () => random() > 2 || admission.admit(), end: () => admission.end() };
  };
  offered.push(simulate(scenario(), drawing, 1).windows[0]?.offered ?? 0);
  offered.push(simulate(scenario(), () => new Counting(2), 1).windows[0]?.offered ?? -1);
  expect(offered[0]).toBe(offered[1]);
});

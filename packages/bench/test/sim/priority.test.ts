import { expect, it } from '@jest/globals';
import { admissionOf } from '../../src/sim/arms.js';
import { scenarioOf } from '../../src/sim/curves.js';
import { median } from '../../src/sim/judge.js';
import type { Scenario } from '../../src/sim/scenario.js';
import { simulate } from '../../src/sim/simulate.js';

/** At the usual plant, 1600/s. */
const overload = (rate: number, critical: number): Scenario => ({
  ...scenarioOf(rate / 1600),
  durationS: 30,
  measureS: [[10, 30]],
  classes: [
    { name: 'critical', share: critical },
    { name: 'default', share: 1 - critical },
  ],
});

const figuresOf = (rate: number, critical: number) => {
  const scenario = overload(rate, critical);
  const windows = [1, 2, 3].map(
    (seed) =>
      simulate(scenario, admissionOf({ arm: 'auto' }, scenario), seed).windows[0] as NonNullable<
        ReturnType<typeof simulate>['windows'][number]
      >,
  );
  return {
    goodput: median(windows.map(({ goodput }) => goodput)),
    refused: median(windows.map(({ refusedOf }) => refusedOf.critical ?? 0)),
  };
};

it.each([
  { critical: 0.9, rate: 4800 },
  { critical: 0.6, rate: 4800 },
])(
  'auto keeps the service busy where critical calls alone are too many: $critical of $rate/s',
  (load) => {
    expect(figuresOf(load.rate, load.critical).goodput).toBeGreaterThan(0.97); // 0.72 once: no cut of the limit ever came through
  },
);

it.each([
  { critical: 0.4, rate: 3520 },
  { critical: 0.45, rate: 3200 },
])('auto serves critical calls that come near to the capacity: $critical of $rate/s', (load) => {
  const { goodput, refused } = figuresOf(load.rate, load.critical);
  expect(goodput).toBeGreaterThan(0.97);
  expect(refused).toBeLessThan(0.006); // 0.012 once
});

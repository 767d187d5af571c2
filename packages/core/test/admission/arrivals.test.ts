import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Arrivals } from '../../src/admission/arrivals.js';

it('knows the oldest of the calls that are there, in whatever order they come, arrived and leave', () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ arrivedUs: fc.integer({ min: -1e9, max: 1e9 }) }) },
    { weight: 2, arbitrary: fc.record({ leaves: fc.nat() }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const arrivals = new Arrivals();
      const there = new Map<number, number>(); // place → arrival
      for (const each of steps) {
        if ('arrivedUs' in each) {
          const place = arrivals.add(each.arrivedUs);
          expect(there.has(place)).toBe(false);
          there.set(place, each.arrivedUs);
        } else if (there.size > 0) {
          const [place, arrivedUs] = [...there][each.leaves % there.size] as [number, number];
          expect(arrivals.at(place)).toBe(arrivedUs);
          arrivals.remove(place);
          there.delete(place);
        }
        expect(arrivals.oldestUs()).toBe(Math.min(...there.values()));
      }
    }),
    { numRuns: 300 },
  );
});

it('gives places of calls that have left to others: as many as there ever were at once', () => {
  const arrivals = new Arrivals();
  let highest = 0;
  for (let round = 0; round < 1000; round++) {
    const places = Array.from({ length: 40 }, () => arrivals.add(round));
    highest = Math.max(highest, ...places);
    for (const place of places) arrivals.remove(place);
  }
  expect(highest).toBeLessThan(64); // 40 calls, and places come in powers of two
});

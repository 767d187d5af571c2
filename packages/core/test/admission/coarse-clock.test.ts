import { VirtualClock } from '@elimit/testkit';
import { afterEach, expect, it, jest } from '@jest/globals';
import { coarse } from '../../src/admission/coarse-clock.js';

afterEach(() => {
  jest.restoreAllMocks();
});

it('reads once a millisecond, and never goes back', () => {
  const wall = jest.spyOn(Date, 'now').mockReturnValue(1000);
  const inner = new VirtualClock(0);
  const clock = coarse(inner);
  expect(clock.nowUs()).toBe(0);
  inner.advance(900);
  expect(clock.nowUs()).toBe(0);
  wall.mockReturnValue(1001);
  expect(clock.nowUs()).toBe(900);
  wall.mockReturnValue(-3_600_000); // the wall clock was set back: another millisecond, that is all
  inner.advance(50);
  expect(clock.nowUs()).toBe(950);
});

it('is not held up by a wall clock that stands still', () => {
  jest.spyOn(Date, 'now').mockReturnValue(1000);
  const inner = new VirtualClock(0);
  const clock = coarse(inner);
  clock.nowUs();
  inner.advance(5000);
  const readings = Array.from({ length: 64 }, () => clock.nowUs());
  expect(readings.indexOf(5000)).toBe(63);
});

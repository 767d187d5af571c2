import { describe, expect, it } from '@jest/globals';
import { RateMeter } from '../../src/metrics/rate-meter.js';

const START_US = 7_000_000;

/** Counts `perSecond` events for `seconds`, from `fromUs` on; where it ended. */
function run(meter: RateMeter, perSecond: number, seconds: number, fromUs: number): number {
  const gapUs = 1e6 / perSecond;
  let nowUs = fromUs;
  for (let i = 0; i < perSecond * seconds; i++) {
    meter.roll(nowUs);
    meter.finished++;
    nowUs += gapUs;
  }
  return nowUs;
}

describe('the rate meter', () => {
  it('knows a steady rate from its first half second on', () => {
    const meter = new RateMeter(START_US);
    const at = run(meter, 200, 0.5, START_US);
    expect(meter.finishedPerSecond(at)).toBe(200);
    expect(meter.refusedPerSecond(at)).toBe(0);
  });

  it('takes the last five seconds, not more', () => {
    const meter = new RateMeter(START_US);
    const at = run(meter, 1000, 20, START_US);
    const later = run(meter, 100, 5, at);
    expect(meter.finishedPerSecond(later - 1)).toBeCloseTo(100, 3);
  });

  it('falls to 0 in silence', () => {
    const meter = new RateMeter(START_US);
    const at = run(meter, 1000, 5, START_US);
    // nine slots of half a second behind the present one: 2 s of traffic in 4.5 s
    expect(meter.finishedPerSecond(at + 2_500_000)).toBe(2000 / 4.5);
    expect(meter.finishedPerSecond(at + 5_000_000)).toBe(0);
  });

  it.each([5_000_000, 5_400_000, 3_600_000_000, 2 ** 50])(
    'starts clean after %d us without a call',
    (idleUs) => {
      const meter = new RateMeter(START_US);
      const at = run(meter, 1000, 5, START_US) + idleUs;
      meter.roll(at);
      meter.refused++;
      expect(meter.finishedPerSecond(at)).toBe(0);
      expect(meter.slotEndUs).toBeGreaterThan(at);
      expect(meter.slotEndUs).toBeLessThanOrEqual(at + 500_000);
      expect(meter.refusedPerSecond(at + 1)).toBeGreaterThan(0);
    },
  );

  it('makes no giant of a single early event', () => {
    const meter = new RateMeter(START_US);
    meter.finished++;
    expect(meter.finishedPerSecond(START_US)).toBe(10); // over a tenth of a second, the least that is taken
  });
});

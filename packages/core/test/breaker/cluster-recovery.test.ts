import { createClusterRecovery } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';

const MS = 1000;

function share(usable: number, minWorkingInstances: number, calls: number): number {
  const recovery = createClusterRecovery({ minWorkingInstances, holdMs: 1000 });
  recovery.start(0);
  let admitted = 0;
  for (let i = 0; i < calls; i++) if (recovery.admits(() => usable, i)) admitted += 1;
  return admitted;
}

describe('cluster recovery, default grade', () => {
  it.each([
    { usable: 0, admitted: 0 },
    { usable: 1, admitted: 33 }, // of 100, a third
    { usable: 1.5, admitted: 50 }, // one and a half: the second is ramping
    { usable: 2, admitted: 66 },
    { usable: 3, admitted: 100 },
    { usable: 9, admitted: 100 },
    { usable: Number.NaN, admitted: 0 },
    { usable: -1, admitted: 0 },
  ])('lets $admitted of 100 calls through with $usable of 3 servers', ({ usable, admitted }) => {
    expect(share(usable, 3, 100)).toBe(admitted);
  });

  it('ends when the number of servers has stood still for longer than holdMs', () => {
    const recovery = createClusterRecovery({ minWorkingInstances: 2, holdMs: 1000 });
    recovery.start(0);
    expect(recovery.admits(() => 1, 10)).toBe(false);
    recovery.admits(() => 1, 10 + 1000 * MS);
    expect(recovery.isRecovering).toBe(true);
    expect(recovery.admits(() => 1, 11 + 1000 * MS)).toBe(true);
    expect(recovery.isRecovering).toBe(false);
  });

  it('starts the hold anew with each change, and never ends with nobody', () => {
    const recovery = createClusterRecovery({ minWorkingInstances: 3, holdMs: 1000 });
    recovery.start(0);
    recovery.admits(() => 1, 0);
    recovery.admits(() => 2, 900 * MS);
    recovery.admits(() => 2, 1800 * MS);
    expect(recovery.isRecovering).toBe(true);
    recovery.admits(() => 0, 1850 * MS);
    recovery.admits(() => 0, 1e9 * MS);
    expect(recovery.isRecovering).toBe(true);
  });

  it('lets everything through, and counts nobody, while not recovering', () => {
    const recovery = createClusterRecovery({ minWorkingInstances: 3, holdMs: 1000 });
    const never = () => {
      throw new Error('counted');
    };
    expect(recovery.admits(never, 0)).toBe(true);
  });

  it('is not begun anew by a second start', () => {
    const recovery = createClusterRecovery({ minWorkingInstances: 2, holdMs: 1000 });
    recovery.start(0);
    recovery.admits(() => 1, 0);
    recovery.start(999 * MS);
    recovery.admits(() => 1, 1001 * MS);
    expect(recovery.isRecovering).toBe(false);
  });

  it('admits usable ÷ minWorkingInstances of the calls, to within one call', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.nat(60),
        fc.integer({ min: 1, max: 400 }),
        (min, usable, calls) => {
          const wanted = calls * Math.min(1, usable / min);
          expect(Math.abs(share(usable, min, calls) - wanted)).toBeLessThan(1 + 1e-6);
        },
      ),
      { numRuns: 300 },
    );
  });

  it.each<[object, string]>([
    [
      { minWorkingInstances: 0, holdMs: 1 },
      'clusterRecovery.minWorkingInstances must be a whole number from 1',
    ],
    [{ minWorkingInstances: 1, holdMs: 0 }, 'clusterRecovery.holdMs must be a number from 1'],
    [{ minWorkingInstances: 1, hold: 1 }, 'clusterRecovery.hold is not an option'],
    [
      { minWorkingInstances: 1, holdMs: 1, strict: 'yes' },
      'clusterRecovery.strict must be true or false',
    ],
  ])('%j is refused', (options, message) => {
    expect(() => createClusterRecovery(options as never)).toThrow(message);
  });
});

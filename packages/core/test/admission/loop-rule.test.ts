import { createGuard, type Guard, type Permit } from '@elimit/core';
import { VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

function make(inflight: number) {
  const clock = new VirtualClock();
  const guard = createGuard({ limit: 1000, clock, registry: false });
  const permits = Array.from({ length: inflight }, () => guard.tryAcquire() as Permit);
  const turn = (turnUs: number, idled = false): void => {
    clock.advance(turnUs);
    guard.observeLoop({ turnUs, idled });
  };
  return { clock, guard, permits, turn };
}

function drainTo(guard: Guard, permits: Permit[], inflight: number): void {
  while (guard.inflight > inflight) permits.pop()?.release('success');
}

describe('the loop rule', () => {
  it('cuts what is in flight in proportion, once the loop has not slept for three long turns', () => {
    const { guard, turn } = make(20);
    turn(40_000);
    turn(40_000);
    expect(guard.maxConcurrency).toBe(1000);
    turn(40_000);
    expect(guard.maxConcurrency).toBe(10); // 20 × 20 ms ÷ 40 ms
    expect(guard.tryAcquire()).toMatchObject({ reason: 'concurrency' });
  });

  it('cuts again only after the last cut was obeyed, and to no less than half each time', () => {
    const { guard, permits, turn } = make(40);
    for (let i = 0; i < 10; i++) turn(500_000);
    expect(guard.maxConcurrency).toBe(20);
    drainTo(guard, permits, 20);
    turn(500_000);
    expect(guard.maxConcurrency).toBe(10);
  });

  it('never shuts the door: one call may always run', () => {
    const { guard, permits, turn } = make(3);
    for (let i = 0; i < 20; i++) {
      turn(500_000);
      drainTo(guard, permits, guard.maxConcurrency);
    }
    expect(guard.maxConcurrency).toBe(1);
    drainTo(guard, permits, 0);
    expect(guard.tryAcquire().admitted).toBe(true);
  });

  it.each([
    { it: 'one pause of two seconds', turns: [2_000_000, 100, 100] },
    { it: 'two long turns', turns: [300_000, 300_000, 100] },
    { it: 'a loop that is busy with short turns', turns: Array.from({ length: 100 }, () => 6_000) },
  ])('leaves $it alone', ({ turns }) => {
    const { guard, turn } = make(50);
    for (const us of turns) turn(us);
    expect(guard.maxConcurrency).toBe(1000);
  });

  it('leaves long turns alone while the loop sleeps in between', () => {
    const { guard, turn } = make(50);
    for (let i = 0; i < 20; i++) {
      turn(50_000);
      turn(50_000);
      turn(1_000, true);
    }
    expect(guard.maxConcurrency).toBe(1000);
  });

  it('climbs a step in four short turns, and an eighth for every turn in which the loop slept', () => {
    const { guard, turn } = make(100);
    for (let i = 0; i < 3; i++) turn(40_000);
    expect(guard.maxConcurrency).toBe(50);
    for (let i = 0; i < 8; i++) turn(5_000);
    expect(guard.maxConcurrency).toBe(52);
    turn(15_000); // neither long nor short: holds
    expect(guard.maxConcurrency).toBe(52);
    turn(1_000, true);
    expect(guard.maxConcurrency).toBe(58); // 52 + 6
    for (let i = 0; i < 30; i++) turn(1_000, true);
    expect(guard.maxConcurrency).toBe(1000); // past the limit it is no longer in force
  });

  it('lapses a second after the last news', () => {
    const { guard, clock, permits, turn } = make(20);
    for (let i = 0; i < 3; i++) turn(40_000);
    drainTo(guard, permits, 10);
    clock.advanceMs(1001);
    expect(guard.tryAcquire().admitted).toBe(true);
    expect(guard.maxConcurrency).toBe(1000);
  });

  it('teaches the engine nothing', () => {
    const { guard, turn } = make(20);
    for (let i = 0; i < 3; i++) turn(40_000);
    guard.tryAcquire();
    expect(guard.snapshot().rejected.concurrency).toBe(1);
    expect(guard.configure({ limit: 1000 })).toBeUndefined();
  });

  it('shows the mean turn, weighed by time', () => {
    const { guard, turn } = make(1);
    turn(1_000_000, true); // the first news after a second counts 1 - 1/e
    expect(guard.snapshot().loopDelayMs).toBeCloseTo(1000 * (1 - Math.exp(-1)), 6);
    for (let i = 0; i < 2000; i++) turn(10_000);
    expect(guard.snapshot().loopDelayMs).toBeCloseTo(10, 3);
  });
});

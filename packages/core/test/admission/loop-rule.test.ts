import { createGuard, type MaxConcurrency, type Permit } from '@elimit/core';
import { SpyLimiter, seededRandom, VirtualClock } from '@elimit/testkit';
import { describe, expect, it } from '@jest/globals';

/** A guard that is kept as full as it allows, up to `load` calls, in a loop that is described turn by turn. */
function make(load: number, limit: MaxConcurrency = 1000) {
  const clock = new VirtualClock();
  const guard = createGuard({ limit, clock, registry: false });
  const permits: Permit[] = [];
  const fill = (): void => {
    while (permits.length < load) {
      const entry = guard.tryAcquire();
      if (!entry.admitted) return;
      permits.push(entry);
    }
  };
  /** A turn in which `ended` calls end; new ones come as soon as they may. */
  const turn = (turnUs: number, ended: number, idled = false): void => {
    for (const permit of permits.splice(0, ended)) permit.release('success');
    fill();
    clock.advance(turnUs);
    guard.observeLoop({ turnUs, idled });
  };
  fill();
  return { clock, guard, permits, turn };
}

describe('the loop rule', () => {
  it('takes off what ended beyond a proper turn, once the loop has not slept for three long ones', () => {
    const { guard, turn } = make(40);
    turn(40_000, 20);
    turn(40_000, 20);
    expect(guard.maxConcurrency).toBe(1000);
    turn(40_000, 20);
    expect(guard.maxConcurrency).toBe(30); // 10 of the 20 fit into 20 ms; the other 10 are too many
    expect(guard.tryAcquire()).toMatchObject({ reason: 'concurrency' });
  });

  it('cuts again only after the last cut was obeyed, and by no more than half each time', () => {
    const { guard, turn } = make(40);
    for (let i = 0; i < 3; i++) turn(500_000, 40);
    expect(guard.maxConcurrency).toBe(20); // 38 are too many, half is the most
    turn(500_000, 5); // 40 were in flight at its beginning
    expect(guard.maxConcurrency).toBe(20);
    turn(500_000, 20); // and 35 at the beginning of this one
    expect(guard.maxConcurrency).toBe(20);
    turn(500_000, 20);
    expect(guard.maxConcurrency).toBe(10);
  });

  it('never shuts the door: one call may always run', () => {
    const { guard, permits, turn } = make(100);
    for (let i = 0; i < 50; i++) turn(10_000_000, 100);
    expect(guard.maxConcurrency).toBe(4); // four in a turn are never too many, however long it takes
    for (const permit of permits) permit.release('success');
    expect(guard.tryAcquire().admitted).toBe(true);
  });

  it.each([
    { it: 'one pause of two seconds', turns: [2_000_000, 100, 100], ended: 40 },
    { it: 'two long turns', turns: [300_000, 300_000, 100], ended: 40 },
    {
      it: 'a loop that is busy with short turns',
      turns: Array.from({ length: 100 }, () => 6_000),
      ended: 40,
    },
    {
      it: 'a pause now and then, in a loop that never sleeps',
      turns: Array.from({ length: 5 }, () => [300_000, ...Array<number>(1_000).fill(5_000)]).flat(),
      ended: 40,
    },
    {
      it: 'handlers that take long one by one',
      turns: Array.from({ length: 100 }, () => 200_000),
      ended: 4,
    },
    {
      it: 'long turns in which none of its calls ended',
      turns: Array.from({ length: 100 }, () => 200_000),
      ended: 0,
    },
  ])('leaves $it alone', ({ turns, ended }) => {
    const { guard, turn } = make(50);
    for (const us of turns) turn(us, ended);
    expect(guard.maxConcurrency).toBe(1000);
  });

  it('leaves long turns alone while the loop sleeps in between', () => {
    const { guard, turn } = make(50);
    for (let i = 0; i < 20; i++) {
      turn(50_000, 40);
      turn(50_000, 40);
      turn(1_000, 1, true);
    }
    expect(guard.maxConcurrency).toBe(1000);
  });

  it('cuts very long turns even if the loop sleeps in between, once they are the state', () => {
    const { guard, permits, turn } = make(60);
    const caps: number[] = [];
    for (let i = 0; i < 12; i++) {
      turn(4_000 * permits.length, permits.length, true); // each call works for 4 ms, all in one turn
      turn(1_000, 0);
      caps.push(guard.maxConcurrency);
    }
    // two are pauses; 240 ms: half; 120 ms: 25 of 30 fit into 100; 100 ms is not very long
    expect(caps).toEqual([1000, 1000, 30, 30, 25, 25, 25, 25, 26, 26, 25, 25]);
  });

  it('cuts long turns with short ones in between, once they take most of the time of a loop that never sleeps', () => {
    const { guard, permits, turn } = make(20);
    const caps: number[] = [];
    for (let i = 0; i < 12; i++) {
      turn(4_000 * permits.length, permits.length); // each call works for 4 ms, all in one turn
      for (let short = 0; short < 4; short++) turn(5_000, 0);
      caps.push(guard.maxConcurrency);
    }
    // two are pauses; then 10 of 20 fit into 40 ms, and four short turns give one back
    expect(caps).toEqual([1000, 1000, 11, 12, 12, 11, 12, 12, 11, 12, 12, 11]);
  });

  it('climbs a step in four short turns, and a quarter for every turn in which the loop slept', () => {
    const { guard, turn } = make(100);
    for (let i = 0; i < 3; i++) turn(40_000, 100);
    expect(guard.maxConcurrency).toBe(50);
    for (let i = 0; i < 8; i++) turn(5_000, 5);
    expect(guard.maxConcurrency).toBe(52);
    for (let i = 0; i < 9; i++) turn(15_000, 5); // neither long nor short: holds
    expect(guard.maxConcurrency).toBe(52);
    turn(1_000, 1, true);
    expect(guard.maxConcurrency).toBe(65);
    for (let i = 0; i < 15; i++) turn(1_000, 1, true);
    expect(guard.maxConcurrency).toBe(1000); // past the limit it is no longer in force
  });

  it('lapses a second after the last news', () => {
    const { guard, clock, permits, turn } = make(20);
    for (let i = 0; i < 3; i++) turn(40_000, 20);
    expect(guard.maxConcurrency).toBe(10);
    for (const permit of permits) permit.release('success');
    clock.advanceMs(1001);
    expect(guard.tryAcquire().admitted).toBe(true);
    expect(guard.maxConcurrency).toBe(1000);
  });

  it('teaches the engine nothing', () => {
    const limiter = new SpyLimiter();
    const { guard, turn } = make(20, limiter);
    for (let i = 0; i < 4; i++) turn(40_000, 20);
    expect(guard.snapshot().rejected.concurrency).toBeGreaterThan(0);
    expect(limiter.refusals).toEqual([]);
  });

  it('shows the mean turn, weighed by time', () => {
    const { guard, turn } = make(1);
    turn(1_000_000, 0, true); // the first news after a second counts 1 - 1/e
    expect(guard.snapshot().loopDelayMs).toBeCloseTo(1000 * (1 - Math.exp(-1)), 6);
    for (let i = 0; i < 2000; i++) turn(10_000, 0);
    expect(guard.snapshot().loopDelayMs).toBeCloseTo(10, 3);
  });
});

/**
 * A thread that reads its sockets once per turn, at three times its capacity: calls wait 10 ms, then take 4 ms
 * of the processor, all that are ready in one turn. Admitting costs 0.2 ms and refusing 0.15. Clients are patient
 * for 500 ms. How many are answered in time and late, per second.
 */
function overrun(limit: number, isWatched: boolean): { inTime: number; late: number } {
  const clock = new VirtualClock(0);
  const random = seededRandom(5);
  const guard = createGuard({ limit, clock, registry: false, random });
  let arrivalUs = 0;
  let waiting: { readyUs: number; arrivedUs: number; permit: Permit }[] = [];
  const answered = { inTime: 0, late: 0 };
  while (clock.nowUs() < 20e6) {
    const beganUs = clock.nowUs();
    while (arrivalUs <= clock.nowUs()) {
      const permit = guard.tryAcquire();
      if (permit.admitted) {
        waiting.push({ readyUs: clock.nowUs() + 10_000, arrivedUs: arrivalUs, permit });
      }
      clock.advance(permit.admitted ? 200 : 150);
      arrivalUs += Math.ceil((-Math.log(1 - random()) * 1e6) / 750);
    }
    const polledUs = clock.nowUs();
    for (const { readyUs, arrivedUs, permit } of waiting) {
      if (readyUs > polledUs) continue;
      clock.advance(4_000);
      permit.release('success');
      answered[clock.nowUs() - arrivedUs <= 500_000 ? 'inTime' : 'late']++;
    }
    waiting = waiting.filter(({ readyUs }) => readyUs > polledUs);
    const turnUs = clock.nowUs() - beganUs;
    const nextUs = Math.min(arrivalUs, ...waiting.map(({ readyUs }) => readyUs));
    const idleUs = Math.max(0, nextUs - clock.nowUs());
    clock.advance(idleUs);
    if (isWatched) guard.observeLoop({ turnUs, idled: idleUs > 0 });
  }
  return { inTime: answered.inTime / 20, late: answered.late / 20 };
}

describe('a limit that is far too high for its thread', () => {
  it('answers nearly everything late', () => {
    const { inTime, late } = overrun(200, false);
    expect(inTime).toBeLessThan(20);
    expect(late).toBeGreaterThan(200);
  });

  it('is put right by the loop rule', () => {
    const { inTime, late } = overrun(200, true);
    expect(inTime).toBeGreaterThan(210);
    expect(late).toBeLessThan(5);
  });
});

import { systemClock, systemTimers } from '@elimit/core';
import { describe, expect, it, jest } from '@jest/globals';

describe('the system clock', () => {
  it('counts whole microseconds and never goes back', () => {
    let last = systemClock.nowUs();
    for (let i = 0; i < 10_000; i++) {
      const now = systemClock.nowUs();
      expect(Number.isSafeInteger(now) && now >= last).toBe(true);
      last = now;
    }
  });

  it('is not moved by the wall clock', () => {
    const from = systemClock.nowUs();
    const wall = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 600_000);
    const took = systemClock.nowUs() - from;
    wall.mockReturnValue(0);
    expect(systemClock.nowUs()).toBeGreaterThanOrEqual(from);
    wall.mockRestore();
    expect(took).toBeLessThan(600_000_000);
  });

  it('runs at the pace of real time', async () => {
    const fromMs = performance.now();
    const fromUs = systemClock.nowUs();
    await new Promise((resolve) => setTimeout(resolve, 30));
    const us = systemClock.nowUs() - fromUs;
    const ms = performance.now() - fromMs;
    expect(us).toBeGreaterThan(29_000); // a timer may fire a fraction of a millisecond early
    expect(us).toBeLessThanOrEqual(ms * 1000 + 1); // read inside of the other pair; + 1 for the cut fractions
  });
});

describe('system timers', () => {
  it('call back once, and keep no process alive', async () => {
    const unref = jest.fn();
    const real = globalThis.setTimeout;
    const spy = jest.spyOn(globalThis, 'setTimeout').mockImplementation(((
      fn: () => void,
      ms: number,
    ) => {
      const timer = real(fn, ms);
      const { unref: original } = timer;
      timer.unref = () => {
        unref();
        return original.call(timer);
      };
      return timer;
    }) as never);
    let calls = 0;
    await new Promise<void>((resolve) => {
      systemTimers.setTimeout(() => {
        calls++;
        resolve();
      }, 1);
      real(() => {}, 50); // something else keeps the process until then
    });
    spy.mockRestore();
    expect([calls, unref.mock.calls.length]).toEqual([1, 1]);
  });

  it('forget what was cleared, also twice', async () => {
    let calls = 0;
    const handle = systemTimers.setTimeout(() => calls++, 1);
    systemTimers.clearTimeout(handle);
    systemTimers.clearTimeout(handle);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(calls).toBe(0);
  });

  it('sleep longer than Node’s 24.8 days in pieces, without a warning', () => {
    const delays: number[] = [];
    const pieces: (() => void)[] = [];
    const spy = jest.spyOn(globalThis, 'setTimeout').mockImplementation(((
      fn: () => void,
      ms: number,
    ) => {
      delays.push(ms);
      pieces.push(fn);
      return { unref() {} };
    }) as never);
    let calls = 0;
    systemTimers.setTimeout(() => calls++, 2 ** 31 + 5_000);
    pieces[0]?.();
    expect(calls).toBe(0);
    pieces[1]?.();
    spy.mockRestore();
    expect(calls).toBe(1);
    expect(delays).toEqual([2 ** 31 - 1, 5_001]);
  });
});

import { describe, expect, it } from '@jest/globals';
import { LoopMonitor } from '../src/loop-monitor.js';
import { ScriptedLoop } from './scripted-loop.js';

function started(): { loop: ScriptedLoop; monitor: LoopMonitor } {
  const loop = new ScriptedLoop();
  const monitor = new LoopMonitor(loop);
  monitor.start();
  return { loop, monitor };
}

function listening() {
  const { loop, monitor } = started();
  const turns: { turnUs: number; idled: boolean }[] = [];
  const listener = {
    observeLoop: (turn: { turnUs: number; idled: boolean }) => turns.push({ ...turn }),
  };
  monitor.watch(listener);
  monitor.watch(listener);
  loop.work(10_000);
  loop.turn();
  turns.length = 0;
  return { loop, monitor, turns, listener };
}

describe('arrival', () => {
  it('is now when the loop slept until now', () => {
    const { loop, monitor } = started();
    loop.turn();
    loop.sleep(50_000);
    expect(monitor.arrived()).toBe(loop.now);
  });

  it('is half of the blind time ago when the loop did not sleep', () => {
    const { loop, monitor } = started();
    loop.turn();
    loop.sleep(5_000);
    monitor.arrived(); // the sockets were looked at here
    loop.work(2_000);
    loop.turn();
    loop.work(98_000);
    expect(monitor.arrived()).toBe(loop.now - 50_000); // (2 + 98) ms ÷ 2
  });

  it('counts blind time from the end of a turn that showed nothing', () => {
    const { loop, monitor } = started();
    loop.turn();
    loop.sleep(5_000); // until a timer
    loop.turn();
    loop.work(4_000); // the timer's work
    expect(monitor.arrived()).toBe(loop.now - 2_000);
  });

  it('is the same for all that one poll shows, however long the first ones took', () => {
    const { loop, monitor } = started();
    loop.turn();
    loop.work(10_000);
    const first = monitor.arrived();
    loop.work(30_000);
    expect(monitor.arrived()).toBe(first);
  });

  it('is now after a sleep, even if a timer had shown something earlier in the turn', () => {
    const { loop, monitor } = started();
    loop.turn();
    loop.work(1_000);
    monitor.arrived(); // made by hand, before the poll
    loop.sleep(70_000);
    expect(monitor.arrived()).toBe(loop.now);
  });

  it('takes some microseconds in a poll that found work for no sleep', () => {
    const { loop, monitor } = started();
    loop.turn();
    loop.work(10_000);
    loop.sleep(20);
    expect(monitor.arrived()).toBe(loop.now - 5_010);
  });
});

describe('the age of a turn', () => {
  it.each<{ it: string; pass: (loop: ScriptedLoop, monitor: LoopMonitor) => void; ageUs: number }>([
    { it: 'is 0 right after a sleep', pass: (loop) => loop.sleep(10_000), ageUs: 0 },
    {
      it: 'grows with work since the first event',
      pass: (loop, monitor) => {
        loop.sleep(10_000);
        monitor.arrived();
        loop.work(700);
      },
      ageUs: 700,
    },
    {
      it: 'counts work before the sleep too when there was no event',
      pass: (loop) => {
        loop.work(300);
        loop.sleep(10_000);
      },
      ageUs: 300,
    },
    {
      it: 'is Infinity without a sleep',
      pass: (loop) => loop.work(10),
      ageUs: Number.POSITIVE_INFINITY,
    },
  ])('$it', ({ pass, ageUs }) => {
    const { loop, monitor } = started();
    loop.turn();
    pass(loop, monitor);
    expect(monitor.turnAgeUs()).toBe(ageUs);
  });
});

describe('turns', () => {
  it('are told once to each listener, without the time slept', () => {
    const { loop, turns } = listening();
    loop.work(3_000);
    loop.sleep(40_000);
    loop.work(2_000);
    loop.turn();
    loop.work(120_000);
    loop.turn();
    expect(turns).toEqual([
      { turnUs: 5_000, idled: true },
      { turnUs: 120_000, idled: false },
    ]);
  });

  it('that are short are told in bunches of 5 ms: the longest, and whether one of them idled', () => {
    const { loop, turns } = listening();
    for (const us of [600, 900, 700]) {
      loop.work(us);
      loop.turn();
    }
    loop.sleep(2_000);
    loop.turn();
    expect(turns).toEqual([]); // 4.2 ms
    loop.work(900);
    loop.turn(); // 5.1 ms
    expect(turns).toEqual([{ turnUs: 900, idled: true }]);
  });

  it('keep the loop awake only while asked to', () => {
    const { loop, monitor } = started();
    expect(loop.refs).toBe(0);
    monitor.keepAwake(true);
    expect(loop.refs).toBe(1);
    loop.turn();
    expect(loop.refs).toBe(1);
    monitor.keepAwake(false);
    expect(loop.refs).toBe(0);
    loop.turn();
    expect(loop.refs).toBe(0);
  });

  it('go on being watched after a listener has thrown', () => {
    const { loop, monitor } = started();
    const listener = {
      observeLoop: (): void => {
        throw new Error('listener');
      },
    };
    monitor.watch(listener);
    loop.work(10_000);
    expect(() => loop.turn()).toThrow('listener');
    expect(monitor.turns).toBe(1);
    expect(() => {
      loop.work(10_000);
      loop.turn();
    }).toThrow('listener');
    expect(monitor.turns).toBe(2);
  });
});

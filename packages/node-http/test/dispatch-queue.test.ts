import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Rejection } from '@elimit/core';
import { describe, expect, it } from '@jest/globals';
import { type DispatchPriority, DispatchQueue } from '../src/dispatch-queue.js';
import { LoopMonitor } from '../src/loop-monitor.js';
import { ScriptedLoop } from './scripted-loop.js';

/** What is special about a request. */
interface Waiting {
  socket?: Partial<Socket>;
  awaits?: boolean;
  priority?: DispatchPriority;
  maxQueued?: number;
  deadlineUs?: number;
}

/** A queue on a loop that goes round when told; its handlers take the time they are given. */
function make() {
  const loop = new ScriptedLoop();
  const monitor = new LoopMonitor(loop);
  const queue = new DispatchQueue(monitor);
  monitor.start();
  loop.turn();
  const events: string[] = [];
  const refuse = (name: string) => (reason: string) => {
    events.push(`${name}: ${reason}`);
    return { admitted: false, reason } as Rejection;
  };
  /** A request whose handler works for so long, at once or after an `await`. */
  const enter = (
    name: string,
    workUs: number,
    {
      socket = {},
      awaits = false,
      priority = 'default',
      maxQueued = 1000,
      deadlineUs = Number.POSITIVE_INFINITY,
    }: Waiting = {},
  ): void => {
    queue.enter(
      { socket, readableAborted: false } as unknown as IncomingMessage,
      { destroyed: false, writableEnded: false } as ServerResponse,
      {
        abandon: () => events.push(`${name}: abandoned`),
        revoke: (reason) => refuse(name)(reason),
      },
      () => {
        events.push(name);
        if (awaits) void Promise.resolve().then(() => loop.work(workUs));
        else loop.work(workUs);
      },
      () => undefined,
      deadlineUs,
      priority,
      maxQueued,
    );
  };
  /** Ends a turn, and lets the handlers that it starts go ahead. */
  const turn = async (): Promise<string[]> => {
    events.length = 0;
    loop.turn();
    await nextTurn();
    return [...events];
  };
  return { loop, monitor, queue, events, enter, turn };
}

describe('a handler starts at once', () => {
  it.each<{ it: string; before: (loop: ScriptedLoop) => void; atOnce: boolean }>([
    { it: 'after a sleep', before: (loop) => loop.sleep(5_000), atOnce: true },
    {
      it: 'up to 1 ms of work after it',
      before: (loop) => {
        loop.sleep(5_000);
        loop.turn();
        loop.sleep(100);
        loop.work(999 - 100);
      },
      atOnce: true,
    },
    { it: 'but not without a sleep', before: (loop) => loop.work(10), atOnce: false },
    {
      it: 'nor after one of 20 µs: a poll that found something takes as long',
      before: (loop) => loop.sleep(20),
      atOnce: false,
    },
    {
      it: 'nor 1 ms after it',
      before: (loop) => {
        loop.work(1_000);
        loop.sleep(5_000);
      },
      atOnce: false,
    },
  ])('$it', ({ before, atOnce }) => {
    const { loop, queue, enter } = make();
    before(loop);
    enter('a', 0);
    expect(queue.snapshot()).toMatchObject(
      atOnce ? { atOnce: 1, waiting: 0 } : { atOnce: 0, waiting: 1 },
    );
  });

  it('once for each connection in a turn: pipelined requests come in one event', async () => {
    const { loop, events, enter, turn } = make();
    const socket = {};
    loop.sleep(5_000);
    enter('a', 0, { socket });
    enter('b', 0, { socket });
    expect(events).toEqual(['a']);
    expect(await turn()).toEqual(['b']);
  });

  it('not while others wait', async () => {
    const { loop, enter, turn } = make();
    loop.work(10);
    enter('a', 0);
    loop.sleep(5_000);
    enter('b', 0);
    expect(await turn()).toEqual(['a', 'b']);
  });
});

describe('from the queue', () => {
  it('handlers start after a turn without a connection', async () => {
    const { monitor, enter, turn } = make();
    enter('a', 0);
    monitor.connected();
    expect(await turn()).toEqual([]);
    monitor.connected();
    expect(await turn()).toEqual([]);
    expect(await turn()).toEqual(['a']);
  });

  it('or after 64 turns with one', async () => {
    const { monitor, queue, enter, turn } = make();
    enter('a', 0);
    for (let i = 0; i < 64; i++) {
      monitor.connected();
      expect(await turn()).toEqual([]);
    }
    monitor.connected();
    expect(await turn()).toEqual(['a']);
    expect(queue.snapshot().spins).toBe(64);
  });

  it('or after 25 ms of them', async () => {
    const { loop, monitor, queue, enter, turn } = make();
    enter('a', 0);
    for (let i = 0; i < 3; i++) {
      monitor.connected();
      expect(await turn()).toEqual([]); // at 0, 10 and 20 ms
      loop.work(10_000);
    }
    monitor.connected();
    expect(await turn()).toEqual(['a']);
    expect(queue.snapshot().spins).toBe(3);
  });

  it.each([
    { it: 'that work at once', awaits: false },
    { it: 'that await first', awaits: true },
  ])('handlers $it start together until 1 ms has been used', async ({ awaits }) => {
    const { enter, turn } = make();
    for (const name of ['a', 'b', 'c', 'd']) enter(name, 400, { awaits });
    expect(await turn()).toEqual(['a', 'b', 'c']); // after 0, 0.4 and 0.8 ms
    expect(await turn()).toEqual(['d']);
  });

  it('handlers get a third of what the others had: a quarter of the loop', async () => {
    const { loop, enter, turn } = make();
    enter('a', 5_000);
    expect(await turn()).toEqual(['a']);
    for (const name of ['b', 'c', 'd', 'e']) enter(name, 5_000);
    loop.work(24_000); // of refusals, say: 8 ms are due
    expect(await turn()).toEqual(['b', 'c']);
  });

  it('those who left, and those whose time has passed, do not start', async () => {
    const { loop, queue, enter, turn } = make();
    const socket: { destroyed?: boolean } = {};
    enter('a', 0, { socket });
    enter('b', 0, { deadlineUs: loop.now });
    enter('c', 0);
    socket.destroyed = true;
    const events = await turn();
    expect(events.toSorted()).toEqual(['a: abandoned', 'b: deadline', 'c']);
    expect(queue.snapshot()).toMatchObject({ abandoned: 1, overdue: 1, started: 1, waiting: 0 });
  });

  it('one more than may wait is refused; a lower class gives way, last come first', async () => {
    const { events, enter, turn } = make();
    enter('a', 0, { priority: 'sheddable' });
    enter('b', 0, { priority: 'sheddable' });
    enter('c', 0, { maxQueued: 2 });
    enter('d', 0, { maxQueued: 2, priority: 'critical' });
    enter('e', 0, { maxQueued: 2 });
    expect(events).toEqual(['b: queue', 'a: queue', 'e: queue']);
    expect(await turn()).toEqual(['d', 'c']);
  });
});

import type { TimerHandle, Timers } from '@elimit/core';

/** How often calls in flight are looked at, in milliseconds: the grain of the hold times. */
export const SWEEP_MS = 50;

/** What a sweep looks at: a node of a doubly linked list, so that joining and leaving cost a few writes. */
export interface Swept {
  before: Swept | undefined;
  after: Swept | undefined;
  look(): void;
}

/**
 * One timer for all calls in flight, instead of several for each. It runs only while there are calls,
 * and keeps no process alive.
 */
export class Sweep {
  readonly #timers: Timers;
  #first: Swept | undefined;
  #timer: TimerHandle; // undefined while none runs

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  add(node: Swept): void {
    const first = this.#first;
    node.after = first;
    if (first !== undefined) first.before = node;
    this.#first = node;
    // a timer that outlives a quiet moment is cheaper than one set up for every call
    if (this.#timer === undefined) this.#arm();
  }

  remove(node: Swept): void {
    const { before, after } = node;
    if (before !== undefined) before.after = after;
    else if (this.#first === node) this.#first = after;
    if (after !== undefined) after.before = before;
    node.before = undefined;
    node.after = undefined;
  }

  #arm(): void {
    this.#timer = this.#timers.setTimeout(this.#run, SWEEP_MS);
  }

  readonly #run = (): void => {
    this.#timer = undefined;
    let node = this.#first;
    while (node !== undefined) {
      const { after } = node; // looking may end the call, and take it off the list
      node.look();
      node = after;
    }
    if (this.#first !== undefined) this.#arm();
  };
}

const sweeps = new WeakMap<Timers, Sweep>();

/** The sweep that goes with these timers: the process has one, tests have their own. */
export function sweepOf(timers: Timers): Sweep {
  let sweep = sweeps.get(timers);
  if (sweep === undefined) {
    sweep = new Sweep(timers);
    sweeps.set(timers, sweep);
  }
  return sweep;
}

import type { Clock, TimerHandle, Timers } from '@elimit/core';

interface Pending {
  readonly atUs: number;
  readonly order: number;
  readonly callback: () => void;
}

/** Time that moves only when told. Also `Timers`: callbacks run, in order, as time passes them. */
export class VirtualClock implements Clock, Timers {
  #nowUs: number;
  #order = 0;
  readonly #pending = new Set<Pending>();

  /** @param startUs - first reading, whole microseconds. Not 0 by default: code that takes 0 for "unset" should be found out by a test that says 0. */
  constructor(startUs = 1_000_000) {
    this.#nowUs = startUs;
  }

  nowUs(): number {
    return this.#nowUs;
  }

  /** How many timers wait: 0 once nothing is left behind. */
  get pendingTimers(): number {
    return this.#pending.size;
  }

  /** Moves time on by `us` microseconds and runs the timers that fall due on the way, each at its own time. */
  advance(us: number): void {
    const untilUs = this.#nowUs + us;
    for (let next = this.#due(untilUs); next !== undefined; next = this.#due(untilUs)) {
      this.#pending.delete(next);
      this.#nowUs = Math.max(this.#nowUs, next.atUs);
      next.callback();
    }
    this.#nowUs = Math.max(this.#nowUs, untilUs); // a callback may have moved it on
  }

  /** The same in milliseconds. */
  advanceMs(ms: number): void {
    this.advance(ms * 1000);
  }

  /** Like `advanceMs`, but lets promises settle before, between and after the timers. */
  async advanceMsAsync(ms: number): Promise<void> {
    const untilUs = this.#nowUs + ms * 1000;
    await settle();
    for (let next = this.#due(untilUs); next !== undefined; next = this.#due(untilUs)) {
      this.#pending.delete(next);
      this.#nowUs = Math.max(this.#nowUs, next.atUs);
      next.callback();
      await settle();
    }
    this.#nowUs = Math.max(this.#nowUs, untilUs); // a callback may have moved it on
    await settle();
  }

  setTimeout(callback: () => void, delayMs: number): TimerHandle {
    const atUs = this.#nowUs + Math.max(0, Math.round(delayMs * 1000));
    const pending: Pending = { atUs, order: this.#order++, callback };
    this.#pending.add(pending);
    return pending;
  }

  clearTimeout(handle: TimerHandle): void {
    this.#pending.delete(handle as Pending);
  }

  #due(untilUs: number): Pending | undefined {
    let first: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.atUs > untilUs) continue;
      if (
        first === undefined ||
        pending.atUs < first.atUs ||
        (pending.atUs === first.atUs && pending.order < first.order)
      ) {
        first = pending;
      }
    }
    return first;
  }
}

/** Lets every promise that can settle now do so: a turn of the event loop, no time. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

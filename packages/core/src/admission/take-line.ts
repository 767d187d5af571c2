import { hasBrand, type Rejection, rejected } from '../errors.js';
import { having, knownKeys, numberIn } from '../options.js';
import type { TimerHandle, Timers } from '../timers.js';
import { onAbort } from './on-abort.js';
import type { TakeOptions } from './rate-contract.js';

const CLOSED: unique symbol = Symbol.for('@elimit/core/ClosedError') as never;

/** Thrown at those who wait when what they wait for is closed. */
export class ClosedError extends Error {
  override readonly name = 'ClosedError';
  readonly code = 'ERR_CLOSED';
  readonly [CLOSED] = true;

  /** True for a `ClosedError` of this or another copy of the package. */
  static is(value: unknown): value is ClosedError {
    return hasBrand(value, CLOSED);
  }
}

/** The refusal of a `take` that would wait for a rate limiter that is closed. */
export function closed(name: string): ClosedError {
  return new ClosedError(`rate limiter ${name} was closed`);
}

/** One call of `take` that waits for its tokens. */
export interface Waiter {
  readonly n: number;
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

interface Place extends Waiter {
  readonly leave: () => void;
}

const KNOWN = { key: true, signal: true, maxWaitMs: true };

/** The most a `take` waits, in milliseconds; `Infinity` for no end. Options that are none throw. */
export function maxWaitOf(options: TakeOptions): number {
  knownKeys('take', options, KNOWN);
  const { signal, maxWaitMs } = options;
  if (signal !== undefined) having('take.signal', signal, ['addEventListener', 'throwIfAborted']);
  if (maxWaitMs === undefined || maxWaitMs === Number.POSITIVE_INFINITY) {
    return Number.POSITIVE_INFINITY;
  }
  return numberIn('take.maxWaitMs', maxWaitMs, 0, Number.MAX_SAFE_INTEGER);
}

/** The refusal of a `take` that would wait too long. */
export function tooLong(name: string, waitMs: number): Error {
  const rejection: Rejection = { admitted: false, reason: 'rate', retryAfterMs: waitMs, name };
  return rejected(rejection);
}

/**
 * Those who wait for one key, first come first served. Holds a timer only for as long as somebody
 * waits: one for whoever is first, and one for each wait that has an end.
 */
export class TakeLine {
  readonly #timers: Timers;
  readonly #places = new Set<Place>();
  #asked = 0;
  #alarm: TimerHandle;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  get size(): number {
    return this.#places.size;
  }

  /** Tokens asked for by all who wait. */
  get asked(): number {
    return this.#places.size === 0 ? 0 : this.#asked; // no dust of sums once it is empty
  }

  get first(): Waiter | undefined {
    return this.#places.values().next().value;
  }

  /** Waits at the end of the line. `left` is told when a place becomes free by abort or by time, and whether it was the first. */
  join(
    n: number,
    signal: AbortSignal | undefined,
    maxWaitMs: number,
    late: () => Error,
    left: (wasFirst: boolean) => void,
  ): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      let deadline: TimerHandle;
      const leave = (): void => {
        if (!this.#places.delete(place)) return;
        this.#asked -= n;
        forgetSignal?.();
        if (deadline !== undefined) this.#timers.clearTimeout(deadline);
      };
      const giveUp = (reason: Error): void => {
        const wasFirst = this.first === place;
        leave();
        reject(reason);
        left(wasFirst);
      };
      const place: Place = { n, resolve, reject, leave };
      if (this.#places.size === 0) this.#asked = 0;
      this.#places.add(place);
      this.#asked += n;
      const forgetSignal =
        signal === undefined ? undefined : onAbort(signal, () => giveUp(signal.reason as Error)); // whatever it is, it is the caller's own
      if (maxWaitMs < Number.POSITIVE_INFINITY) {
        deadline = this.#timers.setTimeout(() => giveUp(late()), maxWaitMs);
      }
    });
  }

  /** The first one has its tokens. */
  serve(): void {
    const place = this.#places.values().next().value;
    place?.leave();
    place?.resolve();
  }

  /** The first one can never have them. */
  turnAway(reason: Error): void {
    const place = this.#places.values().next().value;
    place?.leave();
    place?.reject(reason);
  }

  /** None of them will: the limiter of this name is closed. */
  close(name: string): void {
    this.sleep();
    while (this.#places.size > 0) this.turnAway(closed(name));
  }

  /** Calls back after `waitMs`, in place of any earlier call; not at all for `Infinity`. */
  wake(waitMs: number, callback: () => void): void {
    this.sleep();
    if (waitMs === Number.POSITIVE_INFINITY) return;
    this.#alarm = this.#timers.setTimeout(() => {
      this.#alarm = undefined;
      callback();
    }, waitMs);
  }

  /** No call back any more. */
  sleep(): void {
    if (this.#alarm !== undefined) this.#timers.clearTimeout(this.#alarm);
    this.#alarm = undefined;
  }
}

import type { Rejection, RejectionReason } from '../errors.js';
import type { OnEvent } from '../events.js';
import type { RejectionCounts } from '../metrics/snapshot.js';
import type { Random } from '../random.js';

/** `retryAfterMs` is between these, jitter included. */
const SOONEST_MS = 100;
const LATEST_MS = 10_000;
const JITTER = 0.2;
/** Said while nothing has finished lately, so that no rate is known. */
const UNKNOWN_MS = 1000;
/** Refusals of one reason share this many objects, each with its own jitter... */
const DECK = 16;
/** ...for this long; then the state is looked at again. */
const DECK_LIVES_US = 100_000;
/** An event at most this often, for one source and reason. */
const TELL_EVERY_US = 1_000_000;

/** What refusals say of the load, asked at most ten times a second. */
export type Backlog = (nowUs: number) => { excess: number; finishedPerSecond: number };

interface Reason {
  total: number;
  untold: number;
  tellFromUs: number;
  next: number;
  readonly deck: Rejection[];
}

/**
 * How long the excess takes to drain at the present rate, before jitter. With a fifth of jitter it
 * stays within 100 ms and 10 s.
 */
export function drainMs(excess: number, finishedPerSecond: number): number {
  const ms = finishedPerSecond > 0 ? (excess / finishedPerSecond) * 1000 : UNKNOWN_MS;
  return Math.max(SOONEST_MS / (1 - JITTER), Math.min(LATEST_MS / (1 + JITTER), ms));
}

/** Makes, counts and tells the refusals of one guard. A refusal is shared data: a busy guard makes few objects. */
export class Refusals {
  readonly #name: string;
  readonly #random: Random;
  readonly #backlog: Backlog;
  readonly #onEvent: OnEvent | undefined;
  readonly #reasons: Record<RejectionReason, Reason> = {
    concurrency: noneYet(),
    deadline: noneYet(),
    queue: noneYet(),
    server: noneYet(),
    rate: noneYet(),
  };
  #baseMs = UNKNOWN_MS;
  #baseUntilUs = Number.NEGATIVE_INFINITY;

  constructor(name: string, random: Random, backlog: Backlog, onEvent: OnEvent | undefined) {
    this.#name = name;
    this.#random = random;
    this.#backlog = backlog;
    this.#onEvent = onEvent;
  }

  /** The answer for a refused call, counted and, now and then, told. */
  refuse(reason: RejectionReason, nowUs: number): Rejection {
    const of = this.#reasons[reason];
    of.total++;
    const rejection = this.answer(reason, nowUs);
    if (this.#onEvent !== undefined) this.#tell(of, reason, nowUs, this.#onEvent);
    return rejection;
  }

  /** The answer alone. */
  answer(reason: RejectionReason, nowUs: number): Rejection {
    if (nowUs >= this.#baseUntilUs) this.#renew(nowUs);
    const of = this.#reasons[reason];
    const { deck, next } = of;
    of.next = (next + 1) % DECK;
    deck[next] ??= this.#make(reason);
    return deck[next];
  }

  counts(): RejectionCounts {
    const { concurrency, deadline, queue, server, rate } = this.#reasons;
    return {
      concurrency: concurrency.total,
      deadline: deadline.total,
      queue: queue.total,
      server: server.total,
      rate: rate.total,
    };
  }

  #make(reason: RejectionReason): Rejection {
    const jitter = 1 + JITTER * (2 * this.#random() - 1);
    return {
      admitted: false,
      reason,
      retryAfterMs: Math.round(this.#baseMs * jitter),
      name: this.#name,
    };
  }

  #renew(nowUs: number): void {
    const { excess, finishedPerSecond } = this.#backlog(nowUs);
    this.#baseMs = drainMs(excess, finishedPerSecond);
    this.#baseUntilUs = nowUs + DECK_LIVES_US;
    for (const of of Object.values(this.#reasons)) {
      of.deck.length = 0;
      of.next = 0;
    }
  }

  #tell(of: Reason, reason: RejectionReason, nowUs: number, onEvent: OnEvent): void {
    of.untold++;
    if (nowUs < of.tellFromUs) return;
    const count = of.untold;
    of.untold = 0;
    of.tellFromUs = nowUs + TELL_EVERY_US;
    onEvent({ type: 'reject', name: this.#name, reason, count });
  }
}

function noneYet(): Reason {
  return { total: 0, untold: 0, tellFromUs: Number.NEGATIVE_INFINITY, next: 0, deck: [] };
}

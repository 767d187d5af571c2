/** One turn of the event loop, from one poll to the next. */
export interface LoopTurn {
  /** How long the loop did not look at its sockets, in microseconds; time spent asleep in the poll is left out. */
  readonly turnUs: number;
  /** True if the loop slept in this turn: then nothing was waiting for it. */
  readonly idled: boolean;
}

/** A turn may be long from here on: every new request waits half of it before it is seen. */
const LONG_TURN_US = 20_000;
/**
 * Calls that wait together work together, in one turn, and the loop sleeps while they wait: turns of some tens of
 * milliseconds with sleep in between do the most work. Where the mean turn is longer than this, new requests stay
 * unread until their clients have left, sleep or not.
 */
const VERY_LONG_TURN_US = 100_000;
/**
 * Connections are accepted one in a turn. Where they come without end, the loop never sleeps: short turns that accept
 * them lie between the long ones, and there are too few of them if the long ones take most of the time.
 */
const CROWDED_TURN_US = 40_000;
/** Fewer calls than this never make a turn too long: a handler that takes 50 ms is slow, not one of too many. */
const FEW_CALLS = 4;
const SHORT_TURN_US = 10_000;
/** One long turn is a pause (a collection, a big parse), two are bad luck: not a state. */
const LONG_TURNS_IN_A_ROW = 3;
/** The most that one turn takes away, as a share of what was in flight. */
const DEEPEST_CUT = 0.5;
/** Short turns between two steps up, while the loop never idles. */
const SHORT_TURNS_PER_STEP = 4;
/** Time constant of the mean turn. */
const MEAN_OVER_US = 1_000_000;
/** Without news for this long the rule lapses: whoever measured has gone. */
const LAPSES_AFTER_US = 1_000_000;

/** One turn, and what a guard's calls had to do with it. */
export interface GuardedTurn extends LoopTurn {
  /** The most calls in flight during the turn. */
  readonly peak: number;
  /** Calls that ended in the turn. */
  readonly ended: number;
}

/**
 * The last resort against blind time. While the loop never sleeps, its turns consist of work that was
 * admitted; if they are long, too many calls got their piece of work in one turn. The rule takes as many off
 * what is in flight as ended in the turn beyond its proper length, once per turn and only after the last cut
 * was obeyed, until turns are short. Short turns and sleep give the room back, a quarter at a time. It knows nothing of latency or
 * rate, so a poisoned estimate cannot defeat it. Calls that wait for something else are left their places.
 */
export class LoopRule {
  /** The most calls in flight; `Infinity` while the rule is not in force. */
  cap = Number.POSITIVE_INFINITY;
  #seenUs = 0;
  #meanTurnUs = 0;
  #longTurns = 0;
  #veryLongTurns = 0;
  #crowdedTurns = 0;
  #shortTurns = 0;

  observe({ turnUs, idled, peak, ended }: GuardedTurn, limit: number, nowUs: number): void {
    if (!(turnUs >= 0 && turnUs < Number.POSITIVE_INFINITY)) return; // would stay in the mean
    // weighed by time: a turn counts for as long as it lasted
    const gapUs = Math.max(turnUs, Math.min(nowUs - this.#seenUs, MEAN_OVER_US));
    this.#meanTurnUs += (1 - Math.exp(-gapUs / MEAN_OVER_US)) * (turnUs - this.#meanTurnUs);
    this.#seenUs = nowUs;
    // short turns, and sleep, lie in between: that there is a state is told by the mean, which weighs by time
    const waitsLong = this.#meanTurnUs > VERY_LONG_TURN_US;
    if (!waitsLong) this.#veryLongTurns = 0;
    if (this.#meanTurnUs <= LONG_TURN_US) this.#crowdedTurns = 0;
    if (waitsLong && turnUs > VERY_LONG_TURN_US) {
      if (++this.#veryLongTurns >= LONG_TURNS_IN_A_ROW) {
        this.#cut(turnUs, VERY_LONG_TURN_US, peak, ended);
      }
    } else if (idled) {
      if (!waitsLong) this.#letGo(limit);
    } else if (turnUs > LONG_TURN_US) this.#tighten(turnUs, peak, ended);
    else this.#hold(turnUs, limit);
  }

  /** Drops a cap that nobody has confirmed lately. */
  lapse(nowUs: number): void {
    if (nowUs - this.#seenUs > LAPSES_AFTER_US) {
      this.cap = Number.POSITIVE_INFINITY;
      this.#longTurns = 0;
      this.#meanTurnUs = 0;
    }
  }

  delayMs(nowUs: number): number {
    this.lapse(nowUs);
    return this.#meanTurnUs / 1000;
  }

  #tighten(turnUs: number, peak: number, ended: number): void {
    this.#shortTurns = 0;
    this.#longTurns++;
    const isCrowded = turnUs > CROWDED_TURN_US && this.#meanTurnUs > LONG_TURN_US;
    if (isCrowded) this.#crowdedTurns++;
    if (this.#longTurns >= LONG_TURNS_IN_A_ROW) this.#cut(turnUs, LONG_TURN_US, peak, ended);
    else if (isCrowded && this.#crowdedTurns >= LONG_TURNS_IN_A_ROW) {
      this.#cut(turnUs, CROWDED_TURN_US, peak, ended);
    }
  }

  #cut(turnUs: number, properUs: number, peak: number, ended: number): void {
    this.#shortTurns = 0;
    const excess = Math.floor(ended - Math.max(FEW_CALLS, (ended * properUs) / turnUs));
    if (excess < 1 || peak > this.cap) return;
    this.cap = Math.max(1, Math.ceil(peak * DEEPEST_CUT), peak - excess);
  }

  #hold(turnUs: number, limit: number): void {
    this.#longTurns = 0;
    if (turnUs > SHORT_TURN_US || this.cap === Number.POSITIVE_INFINITY) return;
    if (++this.#shortTurns < SHORT_TURNS_PER_STEP) return;
    this.#shortTurns = 0;
    this.#raise(1, limit);
  }

  #letGo(limit: number): void {
    this.#longTurns = 0;
    this.#crowdedTurns = 0;
    this.#shortTurns = 0;
    if (this.cap !== Number.POSITIVE_INFINITY) this.#raise(Math.max(1, this.cap >> 2), limit);
  }

  #raise(by: number, limit: number): void {
    this.cap += by;
    if (this.cap >= limit) this.cap = Number.POSITIVE_INFINITY;
  }
}

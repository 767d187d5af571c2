/** Who goes first when not all can: `critical`, then `default`, then `sheddable`. */
export type Priority = 'critical' | 'default' | 'sheddable';

/** All classes, the one that is refused last first. */
export const PRIORITIES: readonly Priority[] = ['critical', 'default', 'sheddable'];

/** How often a call of a higher class may still find the limit reached, by the tail below. */
const CRITICAL_TAIL = Math.log(0.0005);
const DEFAULT_TAIL = Math.log(0.01);
/** A class never gives up more than this share of the limit. */
const DEFAULT_MOST = 1 / 4;
const SHEDDABLE_MOST = 3 / 8;
/** What lies on top of it, given up by nobody, may be more. */
const ON_TOP_MOST = 1 / 2;
/** Less lies on top where critical calls alone hold more than this share of the limit, and nothing from `FULL` on. */
const CROWDED = 0.94;
const FULL = 0.99;
/** That is averaged over so many times more arrivals. */
const CROWDED_FOR = 16;
/** Arrivals over which the shares of the limit are averaged. */
const MEMORY = 256;
/** Arrivals between two looks at the shares: two logarithms are not for every call. */
const LOOK_EVERY = 16;

/**
 * How much of the limit a class leaves free for the classes above it.
 *
 * With the limit reached, calls of the higher classes come at `share` times the rate at which slots
 * come free, where `share` is the part of the limit that they hold (Little's law: same latency, same
 * limit). Above the level at which a lower class is refused, the count in flight is then a birth-death
 * chain with that ratio, and it climbs `reserve` steps with a chance of about `share ^ reserve`. The
 * reserve is what makes this chance small: `ln(tail) / ln(share)`. Nobody above: no reserve, so a
 * service that does not use classes has all of its limit.
 *
 * Where the limit is someone's word, reserves are taken out of it. An adaptive engine's limit is what
 * the service needs to be busy: taking the reserve out would waste it, so the reserve of the default
 * class is put on top, as far as the engine's own upper bound allows. It is for bursts: where critical
 * calls alone are too many, it goes, since an engine whose limit is never kept learns nothing. An
 * adaptive limit also falls, all at once in a trial: that is for the others to come down to, while
 * critical calls have all of it and what lies on top, and come down no faster than its average.
 */
export class ClassReserves {
  /** True once a class other than `default` was seen; until then there is nothing to ask. */
  inUse = false;
  // in flight by class; the rest is of the default class
  #critical = 0;
  #sheddable = 0;
  // averaged shares of the limit
  #criticalShare = 0;
  #defaultShare = 0;
  /** The share of critical calls, averaged for longer. */
  #crowd = 0;
  /** The limit, if it rises; what it was on average, if it falls. */
  #slowLimit = 0;
  #untilLook = 0;
  // what the shares come to, within the engine's limit
  #defaultReserve = 0;
  #sheddableReserve = 0;
  /** How much of the reserve lies above the engine's limit. */
  onTop = 0;

  /**
   * What is added to the in-flight count that a call of this class is judged by.
   *
   * @param limit - the engine's
   * @param ceiling - the most that an adaptive engine may set; 0 for others
   * @param inflight - calls in flight, of all classes, without the asking one
   */
  offsetOf(priority: Priority, limit: number, ceiling: number, inflight: number): number {
    if (this.#untilLook-- <= 0) this.#look(limit, ceiling, inflight);
    if (priority === 'critical') return this.#criticalOffset(limit, ceiling, inflight);
    return priority === 'default' ? this.#defaultReserve : this.#sheddableReserve;
  }

  /** Without this a trial of the engine refused all critical calls that came within tens of milliseconds. */
  #criticalOffset(limit: number, ceiling: number, inflight: number): number {
    const own = this.onTop > 0 ? Math.max(limit + this.onTop, this.#slowLimit) : limit;
    const isOwn = inflight < ceiling && this.#critical < own;
    return isOwn ? Math.min(-this.onTop, limit - 1 - inflight) : -this.onTop;
  }

  /** Another engine: what lay above the limit of the last one is not for it. */
  forget(): void {
    this.onTop = 0;
    this.#slowLimit = 0;
    this.#untilLook = 0;
  }

  taken(priority: Priority): void {
    if (priority === 'critical') this.#critical++;
    else if (priority === 'sheddable') this.#sheddable++;
  }

  returned(priority: Priority): void {
    if (priority === 'critical') this.#critical--;
    else if (priority === 'sheddable') this.#sheddable--;
  }

  #look(limit: number, ceiling: number, inflight: number): void {
    this.#untilLook = LOOK_EVERY - 1;
    if (!Number.isFinite(limit)) {
      this.#defaultReserve = this.#sheddableReserve = this.onTop = 0;
      return;
    }
    const weight = LOOK_EVERY / MEMORY;
    const critical = Math.min(1, this.#critical / limit);
    const defaults = Math.min(1, (inflight - this.#critical - this.#sheddable) / limit);
    this.#criticalShare += weight * (critical - this.#criticalShare);
    this.#defaultShare += weight * (defaults - this.#defaultShare);
    this.#crowd += (weight / CROWDED_FOR) * (critical - this.#crowd);
    this.#slowLimit = Math.max(limit, this.#slowLimit + weight * (limit - this.#slowLimit));

    const left = Math.max(0, Math.min(1, (FULL - this.#crowd) / (FULL - CROWDED)));
    const wanted = reserve(CRITICAL_TAIL, this.#criticalShare, left * ON_TOP_MOST, limit);
    this.onTop = Math.max(0, Math.min(wanted, ceiling - limit));
    const ofDefault = reserve(CRITICAL_TAIL, this.#criticalShare, DEFAULT_MOST, limit);
    const above = this.#criticalShare + this.#defaultShare;
    const ofSheddable = reserve(DEFAULT_TAIL, above, SHEDDABLE_MOST, limit);
    const covered = Math.min(this.onTop, ofDefault);
    this.#defaultReserve = ofDefault - covered;
    this.#sheddableReserve = Math.max(this.#defaultReserve, ofSheddable - covered);
  }
}

function reserve(logTail: number, share: number, most: number, limit: number): number {
  if (share < 0.001) return 0;
  // a call of any class must get through when nothing else is in flight
  const bound = Math.min(limit - 1, Math.ceil(most * limit));
  if (share >= 1) return bound;
  return Math.min(bound, Math.ceil(logTail / Math.log(share)));
}

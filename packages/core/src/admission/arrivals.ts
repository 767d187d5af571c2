/** Places to begin with; a guard that never holds more calls than this stays this small. */
const PLACES = 16;

/**
 * When each call in flight arrived. A call is given a place, and gives it back: both are a few writes of plain
 * numbers, while the oldest call is looked for only when somebody asks. Kept apart from the permits, since pointers
 * between objects of different age are dear to a garbage collector, and a permit that is lost would keep others alive.
 */
export class Arrivals {
  /** By place; `Infinity` where nobody is. */
  #us = nobody(PLACES);
  /** The free places, as a stack. */
  #free = places(0, PLACES);
  #freeCount = PLACES;

  /** @returns the call's place, to be given back */
  add(arrivedUs: number): number {
    if (this.#freeCount === 0) this.#grow();
    const place = this.#free[--this.#freeCount] as number;
    this.#us[place] = arrivedUs;
    return place;
  }

  /**
   * When the call of this place arrived; to be asked before `remove`, which could say it too. But where V8 does not put that in
   * line, a returned time is an object, while this is short enough to be in line always.
   */
  at(place: number): number {
    return this.#us[place] as number;
  }

  remove(place: number): void {
    this.#us[place] = Number.POSITIVE_INFINITY;
    this.#free[this.#freeCount++] = place;
  }

  /** When the oldest call arrived; `Infinity` if there is none. */
  oldestUs(): number {
    let oldestUs = Number.POSITIVE_INFINITY;
    for (const us of this.#us) if (us < oldestUs) oldestUs = us;
    return oldestUs;
  }

  /** Twice the places. As many as there ever were calls at once, so they are kept. */
  #grow(): void {
    const before = this.#us;
    const { length } = before;
    this.#us = nobody(2 * length);
    this.#us.set(before);
    this.#free = places(length, 2 * length);
    this.#freeCount = length;
  }
}

function nobody(count: number): Float64Array {
  return new Float64Array(count).fill(Number.POSITIVE_INFINITY);
}

/** Room for `to` free places, of which those `from` on are free. */
function places(from: number, to: number): Uint32Array {
  const free = new Uint32Array(to);
  for (let i = from; i < to; i++) free[i - from] = i;
  return free;
}

/** A binary heap of (time, what), least time first, on typed arrays: no allocation while it does not grow. */
export class EventQueue {
  #time = new Float64Array(1024);
  #what = new Int32Array(1024);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Time of the next event; `Infinity` when there is none. */
  get nextTime(): number {
    return this.#size > 0 ? (this.#time[0] as number) : Infinity;
  }

  push(time: number, what: number): void {
    if (this.#size === this.#time.length) this.#grow();
    const times = this.#time;
    const whats = this.#what;
    let i = this.#size++;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if ((times[parent] as number) <= time) break;
      times[i] = times[parent] as number;
      whats[i] = whats[parent] as number;
      i = parent;
    }
    times[i] = time;
    whats[i] = what;
  }

  /** Takes the next event out and says what it is. Read `nextTime` before. */
  pop(): number {
    const times = this.#time;
    const whats = this.#what;
    const first = whats[0] as number;
    const size = --this.#size;
    const time = times[size] as number;
    const what = whats[size] as number;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= size) break;
      if (child + 1 < size && (times[child + 1] as number) < (times[child] as number)) child++;
      if ((times[child] as number) >= time) break;
      times[i] = times[child] as number;
      whats[i] = whats[child] as number;
      i = child;
    }
    times[i] = time;
    whats[i] = what;
    return first;
  }

  #grow(): void {
    const time = new Float64Array(this.#time.length * 2);
    time.set(this.#time);
    this.#time = time;
    const what = new Int32Array(this.#what.length * 2);
    what.set(this.#what);
    this.#what = what;
  }
}

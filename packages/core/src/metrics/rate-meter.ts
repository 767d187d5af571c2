/** Slots of half a second, ten of them: a rate is taken over the last 4.5 to 5 seconds. */
const SLOTS = 10;
const SLOT_US = 500_000;
/** A rate over less than this says too little. */
const SHORTEST_US = 100_000;

/** Counts two kinds of event, and tells how many of each there were per second, over the last seconds. */
export class RateMeter {
  readonly #startUs: number;
  readonly #finished = Array.from({ length: SLOTS }, () => 0);
  readonly #refused = Array.from({ length: SLOTS }, () => 0);
  #slot = 0;
  /** When the present slot ends: a caller that has the time may skip `roll` before it. */
  slotEndUs: number;
  /** Counted in the present slot; public, so that counting is one addition. */
  finished = 0;
  refused = 0;

  constructor(nowUs: number) {
    this.#startUs = nowUs;
    this.slotEndUs = nowUs + SLOT_US;
  }

  /** Moves on to `nowUs`, over all the time that has passed: an idle hour leaves nothing. */
  roll(nowUs: number): void {
    for (let steps = 0; nowUs >= this.slotEndUs; steps++) {
      if (steps >= SLOTS) {
        // everything is empty by now: only the edge is left to move
        this.slotEndUs += SLOT_US * Math.ceil((nowUs - this.slotEndUs + 1) / SLOT_US);
        return;
      }
      this.#finished[this.#slot] = this.finished;
      this.#refused[this.#slot] = this.refused;
      this.#slot = (this.#slot + 1) % SLOTS;
      this.finished = 0;
      this.refused = 0;
      this.slotEndUs += SLOT_US;
    }
  }

  finishedPerSecond(nowUs: number): number {
    this.roll(nowUs);
    return this.#perSecond(this.#finished, this.finished, nowUs);
  }

  refusedPerSecond(nowUs: number): number {
    this.roll(nowUs);
    return this.#perSecond(this.#refused, this.refused, nowUs);
  }

  #perSecond(slots: readonly number[], present: number, nowUs: number): number {
    let sum = present;
    // the slot that is being counted still holds what it had a round ago
    for (let i = 0; i < SLOTS; i++) if (i !== this.#slot) sum += slots[i] as number;
    const intoSlotUs = nowUs - (this.slotEndUs - SLOT_US);
    const spanUs = Math.min(nowUs - this.#startUs, (SLOTS - 1) * SLOT_US + intoSlotUs);
    return (sum * 1e6) / Math.max(SHORTEST_US, spanUs);
  }
}

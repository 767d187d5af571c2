import { setTimeout as sleep } from 'node:timers/promises';

/** A downstream that does a few things at once and lets the rest wait in line: what makes a service slow without burning its processor. */
export class Slots {
  readonly #count: number;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;
  /** How long one piece of work takes. */
  workMs: number;

  constructor(count: number, workMs: number) {
    this.#count = count;
    this.workMs = workMs;
  }

  get queued(): number {
    return this.#waiting.length;
  }

  async work(): Promise<void> {
    if (this.#busy >= this.#count) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    } else {
      this.#busy += 1;
    }
    await sleep(this.workMs);
    const next = this.#waiting.shift();
    if (next === undefined) this.#busy -= 1;
    else next(); // the slot goes straight on
  }
}

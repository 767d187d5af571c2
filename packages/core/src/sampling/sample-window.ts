/** How samples are gathered. Lengths in microseconds. */
export interface SampleWindowRules {
  /** A window of this age ends with the next sample. */
  readonly windowUs: number;
  /** With fewer samples than this at its end, the window is thrown away. */
  readonly minCount: number;
  /** This many samples end a window early. */
  readonly maxCount: number;
}

/** What became of the window: it stays open, it is thrown away for lack of samples, or it is full. */
export type WindowState = 'open' | 'short' | 'full';

/**
 * Gathers samples until time or count ends it. The start of a window is the sample that ended the one
 * before, so idle time belongs to the window that follows it.
 *
 * The gate that takes one sample per interval stands apart ({@link pass}): an engine may drop a
 * sample that has passed the gate without putting it into the window.
 */
export class SampleWindow {
  successes = 0;
  failures = 0;
  successUs = 0;
  failureUs = 0;
  #startUs = 0;
  #isOpen = false;
  #lastUs = Number.NEGATIVE_INFINITY; // none yet; 0 is a time like any other

  /** When the window began; only meaningful while {@link isOpen}. */
  get startUs(): number {
    return this.#startUs;
  }

  /** True once the first window has begun. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** The last sample that passed the gate; `-Infinity` before the first. */
  get lastUs(): number {
    return this.#lastUs;
  }

  /** Lets one sample per `intervalUs` through. */
  pass(nowUs: number, intervalUs: number): boolean {
    if (nowUs - this.#lastUs < intervalUs) return false;
    this.#lastUs = nowUs;
    return true;
  }

  /** Begins a fresh window. */
  open(nowUs: number): void {
    this.#isOpen = true;
    this.#startUs = nowUs;
    this.successes = 0;
    this.failures = 0;
    this.successUs = 0;
    this.failureUs = 0;
  }

  addSuccess(latencyUs: number): void {
    this.successes += 1;
    this.successUs += latencyUs;
  }

  addFailure(latencyUs: number): void {
    this.failures += 1;
    this.failureUs += latencyUs;
  }

  /** Asked after each sample. */
  state(nowUs: number, rules: SampleWindowRules): WindowState {
    const count = this.successes + this.failures;
    const isOver = nowUs - this.#startUs >= rules.windowUs;
    if (count < rules.minCount) return isOver ? 'short' : 'open';
    return isOver || count >= rules.maxCount ? 'full' : 'open';
  }
}

/** A cost below this, in average latencies, is none. */
const NEGLIGIBLE = 1e-9;

/**
 * One of a breaker's two records of failures. Cost is counted in average latencies: a failure costs
 * one or a little more, a success lets the sum fade by `epsilon^(1/size)`, and the passing of time
 * lets it fade too.
 *
 * It is over when the sum exceeds `size × errorRatio × (1 + epsilon)`: brpc's ceiling, divided by
 * the average latency, which both sides of brpc's comparison carry.
 */
export class ErrorWindow {
  // moves with `configure` only
  #fadePerSuccess = 1;
  #ceiling = 0;
  // moves with every call
  #cost = 0;

  constructor(size: number, errorRatio: number, epsilon: number) {
    this.resize(size, errorRatio, epsilon);
  }

  /** What has piled up, in average latencies. */
  get cost(): number {
    return this.#cost;
  }

  /** Cost ÷ what is tolerated; above 1 the window is over. */
  get ratio(): number {
    return this.#cost === 0 ? 0 : this.#cost / this.#ceiling;
  }

  get isOver(): boolean {
    return this.#cost > this.#ceiling;
  }

  /** Other rules from now on; the cost stays. */
  resize(size: number, errorRatio: number, epsilon: number): void {
    this.#fadePerSuccess = epsilon ** (1 / size);
    this.#ceiling = size * errorRatio * (1 + epsilon);
  }

  success(): void {
    if (this.#cost === 0) return;
    const cost = this.#cost * this.#fadePerSuccess;
    this.#cost = cost > NEGLIGIBLE ? cost : 0; // numbers next to 0 are slow to count with
  }

  failure(cost: number): void {
    this.#cost += cost;
  }

  /** Time passed: `factor` of the cost is left. */
  fade(factor: number): void {
    this.#cost *= factor;
  }

  /** Starts over, with this share of what is tolerated already spent. */
  restart(ratio: number): void {
    this.#cost = this.#ceiling * ratio;
  }
}
